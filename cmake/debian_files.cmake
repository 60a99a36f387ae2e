# Runs on the staged files of the .deb: the configuration file, and the two files that Debian policy wants in every package.
file(GLOB roots "${CPACK_TEMPORARY_INSTALL_DIRECTORY}" "${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*")
foreach(root ${roots})
  set(folder ${root}/usr/share/doc/vramtrack)
  if(IS_DIRECTORY ${folder})
    file(MAKE_DIRECTORY ${root}/etc/vramtrack)
    file(COPY ${CPACK_VRAMTRACK_CONFIG} DESTINATION ${root}/etc/vramtrack FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
    set(date date -R)
    if(DEFINED ENV{SOURCE_DATE_EPOCH})
      set(date date -R -u -d @$ENV{SOURCE_DATE_EPOCH})
    endif()
    execute_process(COMMAND ${date} OUTPUT_VARIABLE now OUTPUT_STRIP_TRAILING_WHITESPACE)
    file(WRITE ${folder}/changelog
         "vramtrack (${CPACK_PACKAGE_VERSION}) stable; urgency=medium\n\n  * What is new: CHANGELOG.md in this folder.\n\n"
         " -- ${CPACK_PACKAGE_CONTACT}  ${now}\n")
    execute_process(COMMAND gzip -9nf ${folder}/changelog)
    file(WRITE ${folder}/copyright
         "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"
         "Upstream-Name: vramtrack\n\n"
         "Files: *\nCopyright: 2026 the vramtrack authors\nLicense: Apache-2.0\n\n"
         "License: Apache-2.0\n On Debian systems the full text is in /usr/share/common-licenses/Apache-2.0\n\n"
         "Files: src/telemetry/*.bpf.c src/telemetry/events.h src/telemetry/kernel.h\n"
         "Copyright: 2026 the vramtrack authors\nLicense: GPL-2.0-only or BSD-2-Clause\n"
         "Comment: the programs that /usr/bin/vramtrack loads into the kernel\n\n"
         "License: GPL-2.0-only\n On Debian systems the full text is in /usr/share/common-licenses/GPL-2\n\n"
         "License: BSD-2-Clause\n"
         " Redistribution and use in source and binary forms, with or without modification, are permitted provided that the\n"
         " following conditions are met:\n .\n"
         " 1. Redistributions of source code must retain the above copyright notice, this list of conditions and the following\n"
         " disclaimer.\n .\n"
         " 2. Redistributions in binary form must reproduce the above copyright notice, this list of conditions and the following\n"
         " disclaimer in the documentation and/or other materials provided with the distribution.\n .\n"
         " THIS SOFTWARE IS PROVIDED BY THE COPYRIGHT HOLDERS AND CONTRIBUTORS \"AS IS\" AND ANY EXPRESS OR IMPLIED WARRANTIES,\n"
         " INCLUDING, BUT NOT LIMITED TO, THE IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS FOR A PARTICULAR PURPOSE ARE\n"
         " DISCLAIMED. IN NO EVENT SHALL THE COPYRIGHT HOLDER OR CONTRIBUTORS BE LIABLE FOR ANY DIRECT, INDIRECT, INCIDENTAL,\n"
         " SPECIAL, EXEMPLARY, OR CONSEQUENTIAL DAMAGES (INCLUDING, BUT NOT LIMITED TO, PROCUREMENT OF SUBSTITUTE GOODS OR\n"
         " SERVICES; LOSS OF USE, DATA, OR PROFITS; OR BUSINESS INTERRUPTION) HOWEVER CAUSED AND ON ANY THEORY OF LIABILITY,\n"
         " WHETHER IN CONTRACT, STRICT LIABILITY, OR TORT (INCLUDING NEGLIGENCE OR OTHERWISE) ARISING IN ANY WAY OUT OF THE USE\n"
         " OF THIS SOFTWARE, EVEN IF ADVISED OF THE POSSIBILITY OF SUCH DAMAGE.\n")
    # The dashboard inside of the program contains uPlot: its terms travel with it.
    set(licence ${CPACK_VRAMTRACK_DASHBOARD}/assets/uplot-licence.txt)
    if(EXISTS ${licence})
      file(READ ${licence} text)
      string(REGEX MATCH "Copyright \\(c\\) ([^\n]*)" found "${text}")
      set(owner "${CMAKE_MATCH_1}")
      string(REGEX MATCH "Permission is hereby.*" terms "${text}")
      string(STRIP "${terms}" terms)
      string(REPLACE "\n\n" "\n.\n" terms "${terms}")
      string(REPLACE "\n" "\n " terms "${terms}")
      if(NOT owner OR NOT terms)
        message(FATAL_ERROR "${licence} has no copyright line or terms where they are looked for: see ${CMAKE_CURRENT_LIST_FILE}")
      endif()
      file(APPEND ${folder}/copyright
           "\nFiles: page/node_modules/uplot/*\nCopyright: ${owner}\nLicense: Expat\n"
           "Comment: uPlot, a part of the dashboard inside of /usr/bin/vramtrack\n\n"
           "License: Expat\n ${terms}\n")
    endif()
    file(REMOVE ${folder}/LICENSE)
  endif()
endforeach()
