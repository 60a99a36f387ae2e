# What `pip` installs beside the package's Python files: the extension (python/CMakeLists.txt), the program, the probe's libraries where
# the program looks for them (../lib/vramtrack), its manual page and the shells' completions. VRAMTRACK_PYTHON_PREBUILT: from that build
# folder, building nothing.
if(VRAMTRACK_PYTHON_PREBUILT)
  set(folder ${VRAMTRACK_PYTHON_PREBUILT})
  file(GLOB extension ${folder}/python/vramtrack/_core.*.so)
  install(FILES ${extension} DESTINATION vramtrack COMPONENT python)
  install(PROGRAMS ${folder}/vramtrack DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT python)
  install(FILES ${folder}/probe/libvramtrack_probe.so ${folder}/probe/libvramtrack_probe_cuda.so DESTINATION ${SKBUILD_DATA_DIR}/lib/vramtrack
          COMPONENT python)
  add_custom_target(product)
  add_custom_target(vramtrack_python)
else()
  set(folder ${CMAKE_BINARY_DIR})
  get_property(probes GLOBAL PROPERTY VRAMTRACK_PROBES)
  install(TARGETS vramtrack RUNTIME DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT python EXCLUDE_FROM_ALL)
  install(TARGETS ${probes} LIBRARY DESTINATION ${SKBUILD_DATA_DIR}/lib/vramtrack COMPONENT python EXCLUDE_FROM_ALL)
endif()
# The Vulkan layers, where the build has them.
install(FILES ${folder}/probe/VkLayer_vramtrack_probe.json DESTINATION ${SKBUILD_DATA_DIR}/lib/vramtrack COMPONENT python EXCLUDE_FROM_ALL OPTIONAL)
install(FILES ${folder}/probe/cuda/VkLayer_vramtrack_probe.json DESTINATION ${SKBUILD_DATA_DIR}/lib/vramtrack/cuda COMPONENT python
        EXCLUDE_FROM_ALL OPTIONAL)
install(FILES ${folder}/vramtrack.1.gz DESTINATION ${SKBUILD_DATA_DIR}/share/man/man1 COMPONENT python EXCLUDE_FROM_ALL OPTIONAL)
set(completions ${CMAKE_SOURCE_DIR}/contrib/completions)
set(share ${SKBUILD_DATA_DIR}/share)
install(FILES ${completions}/vramtrack.bash DESTINATION ${share}/bash-completion/completions RENAME vramtrack COMPONENT python EXCLUDE_FROM_ALL)
install(FILES ${completions}/_vramtrack DESTINATION ${share}/zsh/site-functions COMPONENT python EXCLUDE_FROM_ALL)
install(FILES ${completions}/vramtrack.fish DESTINATION ${share}/fish/vendor_completions.d COMPONENT python EXCLUDE_FROM_ALL)
