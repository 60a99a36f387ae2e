# What `make install` puts where, and the .deb. Dependencies of the package are computed from the binary by dpkg-shlibdeps.
include(GNUInstallDirs)
# The package is of what is already built: the tests beside it need not be.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
get_property(probes GLOBAL PROPERTY VRAMTRACK_PROBES)
add_custom_target(product DEPENDS vramtrack ${probes})

install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs FILES_MATCHING PATTERN "*.md" PATTERN "*.png" PATTERN man EXCLUDE)
if(EXISTS ${CMAKE_SOURCE_DIR}/docs/man/vramtrack.1)
  find_program(GZIP gzip REQUIRED)
  add_custom_command(OUTPUT vramtrack.1.gz DEPENDS ${CMAKE_SOURCE_DIR}/docs/man/vramtrack.1
                     COMMAND ${GZIP} -9nc ${CMAKE_SOURCE_DIR}/docs/man/vramtrack.1 > vramtrack.1.gz)
  add_custom_target(man ALL DEPENDS vramtrack.1.gz)
  add_dependencies(product man)
  install(FILES ${CMAKE_BINARY_DIR}/vramtrack.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()
# Each shell finds its completions there by itself.
install(FILES contrib/completions/vramtrack.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
        RENAME vramtrack OPTIONAL)
install(FILES contrib/completions/_vramtrack DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions OPTIONAL)
install(FILES contrib/completions/vramtrack.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d OPTIONAL)
install(FILES contrib/systemd/vramtrack.service contrib/systemd/vramtrack-agent.service contrib/systemd/vramtrack-fleet.service
        contrib/systemd/vramtrack-actuate.service DESTINATION lib/systemd/system)
install(FILES contrib/sysusers/vramtrack.conf DESTINATION lib/sysusers.d)
install(DIRECTORY contrib/prometheus contrib/grafana contrib/kubernetes DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)
install(FILES contrib/systemd/telemetry.conf DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples/systemd)
install(DIRECTORY contrib/slurm DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples USE_SOURCE_PERMISSIONS)
install(FILES docs/openapi.yaml DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs)

set(CPACK_PACKAGE_NAME vramtrack)
set(CPACK_PACKAGE_VENDOR "vramtrack")
set(CPACK_PACKAGE_CONTACT "vramtrack maintainers <maintainers@vramtrack.example>")
set(VRAMTRACK_PACKAGE_VERSION ${PROJECT_VERSION} CACHE STRING "Version of the .deb, where it differs (the test of an upgrade)")
set(CPACK_PACKAGE_VERSION ${VRAMTRACK_PACKAGE_VERSION})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_GENERATOR DEB)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "tzdata, procps, systemd | systemd-standalone-sysusers | systemd-sysusers, init-system-helpers (>= 1.54)")
set(late_packages)  # dpkg-shlibdeps does not see what is loaded later
foreach(library ${VRAMTRACK_LATE})
  file(REAL_PATH ${library} library)
  execute_process(COMMAND dpkg-query -S ${library} OUTPUT_VARIABLE owner ERROR_QUIET)
  if(owner MATCHES "^([^:,]+):")
    list(APPEND late_packages ${CMAKE_MATCH_1})
  endif()
endforeach()
list(REMOVE_DUPLICATES late_packages)
list(TRANSFORM late_packages PREPEND ", ")
string(APPEND CPACK_DEBIAN_PACKAGE_DEPENDS ${late_packages})
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${CMAKE_SOURCE_DIR}/contrib/debian/postinst ${CMAKE_SOURCE_DIR}/contrib/debian/prerm
    ${CMAKE_SOURCE_DIR}/contrib/debian/postrm ${CMAKE_BINARY_DIR}/conffiles)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
file(WRITE ${CMAKE_BINARY_DIR}/conffiles "/etc/vramtrack/config.toml\n")
set(CPACK_VRAMTRACK_CONFIG ${CMAKE_SOURCE_DIR}/contrib/debian/config.toml)
set(CPACK_DEBIAN_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "finds GPU memory leaks and predicts out-of-memory")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
    "vramtrack watches the memory of every GPU and of every process on it, tells a
leak from healthy use, says how fast it grows, when it will end in an
out-of-memory error and which process does it. It gives the same verdict from
a recorded nvidia-smi log.")
set(CPACK_VRAMTRACK_DASHBOARD ${CMAKE_BINARY_DIR}/dashboard)  # for the script: what cmake/page.cmake made
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/debian_files.cmake)
include(CPack)
