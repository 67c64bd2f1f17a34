# The libraries that hosts link. Both export what red.h declares and nothing else, so that a process that holds another LLVM,
# or functions of the same names, is safe.
#
#   libred.so                 compiler and runtime
#   libred-rt.so, libred-rt.a the runtime alone, for kernels compiled ahead of time: no LLVM

function(red_shared_library name)
  add_library(${name} SHARED)
  target_include_directories(${name} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/runtime>)
  target_link_options(${name} PRIVATE
    -Wl,--gc-sections -Wl,--build-id -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/red.map)
  if(NOT RED_SANITIZE AND NOT RED_FUZZ AND NOT RED_TSAN) # sanitizers are found through their symbols, and in the program
    target_link_options(${name} PRIVATE -Wl,--exclude-libs,ALL -Wl,-z,defs)
  endif()
  set_target_properties(${name} PROPERTIES
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/red.map
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
endfunction()

red_shared_library(red)
target_sources(red PRIVATE $<TARGET_OBJECTS:red-base> $<TARGET_OBJECTS:red-rt>)
target_link_libraries(red PRIVATE red-options red-llvm Threads::Threads ${CMAKE_DL_LIBS} m)
set_target_properties(red PROPERTIES LINKER_LANGUAGE CXX)

red_shared_library(red-rt-shared)
target_sources(red-rt-shared PRIVATE $<TARGET_OBJECTS:red-rt>)
target_link_libraries(red-rt-shared PRIVATE red-options Threads::Threads ${CMAKE_DL_LIBS} m)
set_target_properties(red-rt-shared PROPERTIES OUTPUT_NAME red-rt EXPORT_NAME red-rt LINKER_LANGUAGE C)

# The archive is one object whose hidden symbols have become local.
set(archive ${PROJECT_BINARY_DIR}/archive/libred-rt.a)
add_custom_command(OUTPUT ${archive}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/archive
  COMMAND ${CMAKE_COMMAND} -E rm -f ${archive}
  COMMAND ${CMAKE_LINKER} -r -o archive/red-rt.o --whole-archive $<TARGET_FILE:red-rt>
  COMMAND ${CMAKE_OBJCOPY} --localize-hidden archive/red-rt.o
  COMMAND ${CMAKE_AR} rcs ${archive} archive/red-rt.o
  DEPENDS red-rt WORKING_DIRECTORY ${PROJECT_BINARY_DIR} VERBATIM)
add_custom_target(red-rt-archive ALL DEPENDS ${archive})
