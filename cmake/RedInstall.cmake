# What `cmake --install` puts where.
include(CMakePackageConfigHelpers)

set(red_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/red)
install(TARGETS redc EXPORT redTargets RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET redc-clang)
  install(TARGETS redc-clang RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/red)
endif()
if(TARGET red)
  install(TARGETS red red-rt-shared EXPORT redTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(FILES ${PROJECT_BINARY_DIR}/archive/libred-rt.a DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(FILES runtime/red.h runtime/red_kernel.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(FILES runtime/python/red.py DESTINATION ${CMAKE_INSTALL_DATADIR}/red/python)
  set(red_pc_flags "Libs: -L\${libdir} -lred\nCflags: -I\${includedir}\n")
endif()
install(EXPORT redTargets NAMESPACE red:: DESTINATION ${red_cmake_dir})

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/redConfig.cmake.in ${PROJECT_BINARY_DIR}/redConfig.cmake
  INSTALL_DESTINATION ${red_cmake_dir} PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
install(FILES cmake/RedAddKernel.cmake DESTINATION ${red_cmake_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/redConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/redConfig.cmake ${PROJECT_BINARY_DIR}/redConfigVersion.cmake
  DESTINATION ${red_cmake_dir})

# The prefix is found from the file's own place: an installed tree may be moved.
file(RELATIVE_PATH red_pc_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${PROJECT_SOURCE_DIR}/cmake/red.pc.in ${PROJECT_BINARY_DIR}/red.pc @ONLY)
if(TARGET red)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/red-rt.pc.in ${PROJECT_BINARY_DIR}/red-rt.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/red-rt.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
install(FILES ${PROJECT_BINARY_DIR}/red.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

file(GLOB manuals CONFIGURE_DEPENDS docs/*.1)
install(FILES ${manuals} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
file(GLOB language CONFIGURE_DEPENDS docs/*.7)
install(FILES ${language} DESTINATION ${CMAKE_INSTALL_MANDIR}/man7)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR}
  FILES_MATCHING PATTERN "*.red" PATTERN "*.c" PATTERN "*.h" PATTERN "*.py")
