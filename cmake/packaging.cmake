# What `make install` puts where, and the .deb. Dependencies of the package are computed from the binary by dpkg-shlibdeps.
include(GNUInstallDirs)

install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs FILES_MATCHING PATTERN "*.md")
install(FILES contrib/systemd/vramtrack.service DESTINATION lib/systemd/system)

set(CPACK_PACKAGE_NAME vramtrack)
set(CPACK_PACKAGE_VENDOR "vramtrack")
set(CPACK_PACKAGE_CONTACT "vramtrack maintainers <maintainers@vramtrack.example>")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_GENERATOR DEB)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS tzdata)
set(CPACK_DEBIAN_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
    "finds GPU memory leaks and predicts out-of-memory
 vramtrack watches the memory of every GPU and of every process on it, tells a
 leak from healthy use, says how fast it grows, when it will end in an
 out-of-memory error and which process does it. It gives the same verdict from
 a recorded nvidia-smi log.")
include(CPack)
