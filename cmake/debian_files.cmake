# Runs on the staged files of the .deb: the two files that Debian policy wants in every package.
file(GLOB roots "${CPACK_TEMPORARY_INSTALL_DIRECTORY}" "${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*")
foreach(root ${roots})
  set(folder ${root}/usr/share/doc/vramtrack)
  if(IS_DIRECTORY ${folder})
    execute_process(COMMAND date -R OUTPUT_VARIABLE now OUTPUT_STRIP_TRAILING_WHITESPACE)
    file(WRITE ${folder}/changelog
         "vramtrack (${CPACK_PACKAGE_VERSION}) stable; urgency=medium\n\n  * What is new: CHANGELOG.md in this folder.\n\n"
         " -- ${CPACK_PACKAGE_CONTACT}  ${now}\n")
    execute_process(COMMAND gzip -9nf ${folder}/changelog)
    file(WRITE ${folder}/copyright
         "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"
         "Upstream-Name: vramtrack\n\n"
         "Files: *\nCopyright: 2026 the vramtrack authors\nLicense: Apache-2.0\n\n"
         "License: Apache-2.0\n On Debian systems the full text is in /usr/share/common-licenses/Apache-2.0\n")
    file(REMOVE ${folder}/LICENSE)
  endif()
endforeach()
