# The dashboard in page/, bundled at build time and embedded into the agent. Included where vramtrack_agent is defined.
# VRAMTRACK_PAGE: AUTO builds it where node and npm are, and goes on without it when they or the network are missing; ON
# fails then (for a package to be given away); OFF leaves it out. Without it the agent serves dashboard_missing.html.
set(VRAMTRACK_PAGE AUTO CACHE STRING "Build the dashboard: AUTO, ON (or fail) or OFF")
set_property(CACHE VRAMTRACK_PAGE PROPERTY STRINGS AUTO ON OFF)

set(page_source ${CMAKE_SOURCE_DIR}/page)
set(page_output ${CMAKE_BINARY_DIR}/dashboard)
set(page_stamp)
set(VRAMTRACK_NODE "" CACHE INTERNAL "node, where the dashboard is built")
if(VRAMTRACK_PAGE)
  find_program(NODE NAMES node nodejs)
  find_program(NPM npm)
  set(node_version 0)
  if(NODE)
    execute_process(COMMAND ${NODE} --version OUTPUT_VARIABLE node_version OUTPUT_STRIP_TRAILING_WHITESPACE)
    string(REGEX REPLACE "^v" "" node_version "${node_version}")
  endif()
  if(NODE AND NPM AND node_version VERSION_GREATER_EQUAL 18)
    set(VRAMTRACK_NODE ${NODE} CACHE INTERNAL "node, where the dashboard is built")
    if(VRAMTRACK_PAGE STREQUAL "AUTO")
      set(required OFF)
    else()
      set(required ON)
    endif()
    file(GLOB page_files CONFIGURE_DEPENDS ${page_source}/src/*)
    set(page_stamp ${CMAKE_BINARY_DIR}/dashboard.stamp)
    add_custom_command(
      OUTPUT ${page_stamp}
      COMMAND ${CMAKE_COMMAND} -DSOURCE=${page_source} -DOUTPUT=${page_output} -DSTAMP=${page_stamp} -DNODE=${NODE} -DNPM=${NPM}
              -DREQUIRED=${required} -P ${CMAKE_SOURCE_DIR}/cmake/build_page.cmake
      DEPENDS ${page_files} ${page_source}/package.json ${page_source}/package-lock.json ${page_source}/build.mjs
              ${CMAKE_SOURCE_DIR}/cmake/build_page.cmake
      COMMENT "Building the dashboard" VERBATIM)
  elseif(NOT VRAMTRACK_PAGE STREQUAL "AUTO")
    message(FATAL_ERROR "VRAMTRACK_PAGE is ON, and node 18 or newer (found: ${node_version}) with npm is missing: install "
                        "nodejs and npm, or set VRAMTRACK_PAGE=OFF")
  else()
    message(STATUS "No node 18 with npm: the agent gets a plain page instead of the dashboard (scripts/setup.sh web)")
  endif()
endif()

set(page_assets ${CMAKE_BINARY_DIR}/assets.cpp)
add_custom_command(OUTPUT ${page_assets}
                   COMMAND ${CMAKE_COMMAND} -DFOLDER=${page_output} -DOUTPUT=${page_assets}
                           -P ${CMAKE_SOURCE_DIR}/cmake/embed_assets.cmake
                   COMMAND ${CMAKE_COMMAND} -E touch ${page_assets}
                   DEPENDS ${page_stamp} ${CMAKE_SOURCE_DIR}/cmake/embed_assets.cmake
                           ${CMAKE_SOURCE_DIR}/cmake/dashboard_missing.html)
target_sources(vramtrack_agent PRIVATE ${page_assets})
