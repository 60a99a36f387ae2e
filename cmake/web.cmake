# The dashboard in web/, bundled at build time and embedded into the agent. Included where vramtrack_web is defined.
# VRAMTRACK_WEB: AUTO builds it where node and npm are, and goes on without it when they or the network are missing; ON
# fails then (for a package to be given away); OFF leaves it out. Without it the agent serves dashboard_missing.html.
set(VRAMTRACK_WEB AUTO CACHE STRING "Build the dashboard: AUTO, ON (or fail) or OFF")
set_property(CACHE VRAMTRACK_WEB PROPERTY STRINGS AUTO ON OFF)

set(web_source ${CMAKE_SOURCE_DIR}/web)
set(web_output ${CMAKE_BINARY_DIR}/dashboard)
set(web_stamp)
set(VRAMTRACK_NODE "" CACHE INTERNAL "node, where the dashboard is built")
if(VRAMTRACK_WEB)
  find_program(NODE NAMES node nodejs)
  find_program(NPM npm)
  set(node_version 0)
  if(NODE)
    execute_process(COMMAND ${NODE} --version OUTPUT_VARIABLE node_version OUTPUT_STRIP_TRAILING_WHITESPACE)
    string(REGEX REPLACE "^v" "" node_version "${node_version}")
  endif()
  if(NODE AND NPM AND node_version VERSION_GREATER_EQUAL 18)
    set(VRAMTRACK_NODE ${NODE} CACHE INTERNAL "node, where the dashboard is built")
    if(VRAMTRACK_WEB STREQUAL "AUTO")
      set(required OFF)
    else()
      set(required ON)
    endif()
    file(GLOB web_files CONFIGURE_DEPENDS ${web_source}/src/*)
    set(web_stamp ${CMAKE_BINARY_DIR}/dashboard.stamp)
    add_custom_command(
      OUTPUT ${web_stamp}
      COMMAND ${CMAKE_COMMAND} -DSOURCE=${web_source} -DOUTPUT=${web_output} -DSTAMP=${web_stamp} -DNODE=${NODE} -DNPM=${NPM}
              -DREQUIRED=${required} -P ${CMAKE_SOURCE_DIR}/cmake/build_web.cmake
      DEPENDS ${web_files} ${web_source}/package.json ${web_source}/package-lock.json ${web_source}/build.mjs
              ${CMAKE_SOURCE_DIR}/cmake/build_web.cmake
      COMMENT "Building the dashboard" VERBATIM)
  elseif(NOT VRAMTRACK_WEB STREQUAL "AUTO")
    message(FATAL_ERROR "VRAMTRACK_WEB is ON, and node 18 or newer (found: ${node_version}) with npm is missing: install "
                        "nodejs and npm, or set VRAMTRACK_WEB=OFF")
  else()
    message(STATUS "No node 18 with npm: the agent gets a plain page instead of the dashboard (scripts/setup.sh web)")
  endif()
endif()

set(web_assets ${CMAKE_BINARY_DIR}/assets.cpp)
add_custom_command(OUTPUT ${web_assets}
                   COMMAND ${CMAKE_COMMAND} -DFOLDER=${web_output} -DOUTPUT=${web_assets}
                           -P ${CMAKE_SOURCE_DIR}/cmake/embed_assets.cmake
                   COMMAND ${CMAKE_COMMAND} -E touch ${web_assets}
                   DEPENDS ${web_stamp} ${CMAKE_SOURCE_DIR}/cmake/embed_assets.cmake
                           ${CMAKE_SOURCE_DIR}/cmake/dashboard_missing.html)
target_sources(vramtrack_web PRIVATE ${web_assets})
