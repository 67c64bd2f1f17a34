# redc-clang: the program behind `redc inspect` and `redc lift`, linked to Clang's shared library. Built where Clang's headers
# of the same version as LLVM's are found; redc says which package to install where it was not.
option(RED_CLANG "Build redc-clang, where Clang's development files are found" ON)

set(RED_CLANG_PACKAGES "libclang-${RED_LLVM_VERSION}-dev libclang-cpp${RED_LLVM_VERSION}-dev")
red_llvm_config(clang_libdir --libdir)
find_path(RED_CLANG_INCLUDE_${RED_LLVM_VERSION} clang/Tooling/Tooling.h PATHS ${llvm_include} NO_DEFAULT_PATH)
find_library(RED_CLANG_CPP_${RED_LLVM_VERSION} clang-cpp PATHS ${clang_libdir} NO_DEFAULT_PATH)
find_library(RED_CLANG_LLVM_${RED_LLVM_VERSION} LLVM PATHS ${clang_libdir} NO_DEFAULT_PATH)
set(clang_parts ${RED_CLANG_INCLUDE_${RED_LLVM_VERSION}} ${RED_CLANG_CPP_${RED_LLVM_VERSION}}
  ${RED_CLANG_LLVM_${RED_LLVM_VERSION}})

configure_file(${PROJECT_SOURCE_DIR}/cmake/red_clang.h.in ${PROJECT_BINARY_DIR}/red_clang.h @ONLY)
if(NOT RED_CLANG OR RED_FUZZ)
  return()
endif()
if(clang_parts MATCHES NOTFOUND)
  message(STATUS "Clang ${RED_LLVM_VERSION} was not found: no redc inspect, no redc lift (install ${RED_CLANG_PACKAGES})")
  return()
endif()

# Sources: grammar/lift*, codegen/inspect*, compiler/clang_*. Of the compiler itself only what the linker finds wanting in
# red-base, and none of it may need LLVM: the archives of red-llvm and the shared library do not go together.
file(GLOB clang_sources CONFIGURE_DEPENDS
  grammar/lift*.c grammar/lift*.cpp codegen/inspect*.c codegen/inspect*.cpp compiler/clang_*.c compiler/clang_*.cpp)
add_executable(redc-clang ${clang_sources})
target_link_libraries(redc-clang PRIVATE red-options
  $<TARGET_FILE:red-base> $<TARGET_FILE:red-rt>
  ${RED_CLANG_CPP_${RED_LLVM_VERSION}} ${RED_CLANG_LLVM_${RED_LLVM_VERSION}} Threads::Threads ${CMAKE_DL_LIBS} m)
add_dependencies(redc-clang red-base red-rt)
target_include_directories(redc-clang SYSTEM PRIVATE ${RED_CLANG_INCLUDE_${RED_LLVM_VERSION}})
set_target_properties(redc-clang PROPERTIES LINKER_LANGUAGE CXX RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}
  BUILD_RPATH ${clang_libdir} INSTALL_RPATH ${clang_libdir})
# red's own headers, which a lifted file may include wherever redc lies.
foreach(header red red_kernel)
  set(embedded ${PROJECT_BINARY_DIR}/${header}_text.h)
  string(TOUPPER ${header} name)
  add_custom_command(OUTPUT ${embedded}
    COMMAND ${CMAKE_COMMAND} -DINPUT=${PROJECT_SOURCE_DIR}/runtime/${header}.h -DOUTPUT=${embedded} -DNAME=${name}_TEXT
            -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS runtime/${header}.h cmake/embed.cmake VERBATIM)
  target_sources(redc-clang PRIVATE ${embedded})
endforeach()
# Clang's headers are slow to compile, and what is written here is not hot.
target_compile_options(redc-clang PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-O1;-g0;-Wno-unused-parameter>)
# Exceptions and streams of Clang's library are the shared libstdc++'s.
target_link_options(redc-clang PRIVATE -Wl,--gc-sections)
