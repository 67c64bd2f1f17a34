# red-llvm: what the NVPTX backend needs of LLVM, static, so that the process that holds red may hold another LLVM too.
find_program(RED_LLVM_CONFIG_${RED_LLVM_VERSION}
  NAMES llvm-config-${RED_LLVM_VERSION}
  PATHS /usr/lib/llvm-${RED_LLVM_VERSION}/bin)
set(llvm_config ${RED_LLVM_CONFIG_${RED_LLVM_VERSION}})
if(NOT llvm_config)
  message(FATAL_ERROR "LLVM ${RED_LLVM_VERSION} was not found: install llvm-${RED_LLVM_VERSION}-dev")
endif()

function(red_llvm_config out)
  execute_process(COMMAND ${llvm_config} --link-static ${ARGN}
    OUTPUT_VARIABLE answer OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(answer UNIX_COMMAND "${answer}")
  set(${out} ${answer} PARENT_SCOPE)
endfunction()

red_llvm_config(llvm_include --includedir)
red_llvm_config(llvm_libs --libfiles core analysis passes target nvptx)

# Compression and the like: LLVM's archives name them, the linker drops what nothing uses.
set(llvm_system)
foreach(name z zstd)
  find_library(RED_LIB_${name} NAMES lib${name}.a ${name})
  if(RED_LIB_${name})
    list(APPEND llvm_system ${RED_LIB_${name}})
  endif()
endforeach()

add_library(red-llvm INTERFACE)
target_include_directories(red-llvm SYSTEM INTERFACE ${llvm_include})
target_link_libraries(red-llvm INTERFACE ${llvm_libs} ${llvm_system})
