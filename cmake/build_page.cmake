# Builds the dashboard at build time: cmake -DSOURCE=page -DOUTPUT=FOLDER -DSTAMP=FILE -DNODE= -DNPM= -DREQUIRED= -P build_page.cmake
# Packages are fetched once for all build folders, into page/node_modules, as page/package-lock.json names them. Without them
# and without REQUIRED the build continues without a dashboard, says so, and tries again at the next build.
file(MAKE_DIRECTORY ${SOURCE}/build)
file(LOCK ${SOURCE}/build/install.lock GUARD PROCESS TIMEOUT 600 RESULT_VARIABLE locked)

set(installed ${SOURCE}/node_modules/.package-lock.json)
set(failed)
if(NOT EXISTS ${installed} OR ${SOURCE}/package-lock.json IS_NEWER_THAN ${installed})
  message(STATUS "dashboard: fetching its packages with npm")
  execute_process(
    COMMAND ${NPM} ci --prefer-offline --ignore-scripts --no-progress --loglevel=error --fetch-retries=1
            --fetch-retry-mintimeout=1000 --fetch-timeout=30000
    WORKING_DIRECTORY ${SOURCE} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(result EQUAL 0)
    file(TOUCH ${installed})
  else()
    string(SUBSTRING "${output}" 0 300 output)
    set(failed "npm could not fetch its packages (is there a network?):\n${output}")
  endif()
endif()
if(NOT failed)
  execute_process(COMMAND ${NODE} ${SOURCE}/build.mjs --out ${OUTPUT} RESULT_VARIABLE result OUTPUT_VARIABLE output
                  ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "dashboard: page/build.mjs failed:\n${output}")  # our own source is wrong: never passed over
  endif()
  file(TOUCH ${STAMP})
elseif(REQUIRED)
  message(FATAL_ERROR "dashboard: ${failed}")
else()
  file(REMOVE_RECURSE ${OUTPUT} ${STAMP})
  message(WARNING "dashboard: ${failed}\nGoing on without it: the agent serves a plain page. The next build tries again; "
                  "-DVRAMTRACK_PAGE=OFF leaves it out.")
endif()
