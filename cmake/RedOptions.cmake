# red-options: the flags that every target of the project is built with.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# Assertions stay in every build: what is tested is what is shipped.
set(CMAKE_C_FLAGS_RELEASE "-O2")
set(CMAKE_CXX_FLAGS_RELEASE "-O2")
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g")

add_library(red-options INTERFACE)
# Root for "compiler/ir.h"; the build folder for "grammar/red.tab.h" and "red_version.h".
target_include_directories(red-options INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
target_compile_definitions(red-options INTERFACE _GNU_SOURCE)
target_compile_options(red-options INTERFACE
  -Wall -Wextra -Wshadow $<$<COMPILE_LANGUAGE:C>:-Wswitch-enum>
  -ffunction-sections -fdata-sections -ffp-contract=off
  $<$<C_COMPILER_ID:Clang>:-Wno-pass-failed> # a loop that is not vectorised is slow, not wrong
  $<$<BOOL:${RED_WERROR}>:-Werror>)
target_link_options(red-options INTERFACE -Wl,--as-needed)

if(RED_SANITIZE OR RED_FUZZ)
  set(red_sanitize -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_compile_options(red-options INTERFACE ${red_sanitize})
  target_compile_definitions(red-options INTERFACE RED_SANITIZED)
  target_link_options(red-options INTERFACE ${red_sanitize})
elseif(RED_TSAN)
  target_compile_options(red-options INTERFACE -fsanitize=thread -fno-omit-frame-pointer)
  target_compile_definitions(red-options INTERFACE RED_SANITIZED)
  target_link_options(red-options INTERFACE -fsanitize=thread)
else()
  # redc-clang shares Clang's libstdc++.
  target_link_options(red-options INTERFACE
    $<$<NOT:$<STREQUAL:$<TARGET_PROPERTY:NAME>,redc-clang>>:-static-libgcc;-static-libstdc++>)
endif()
if(RED_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "RED_FUZZ needs clang: -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++")
  endif()
  target_compile_options(red-options INTERFACE -fsanitize=fuzzer-no-link)
endif()

configure_file(${PROJECT_SOURCE_DIR}/cmake/red_version.h.in ${PROJECT_BINARY_DIR}/red_version.h @ONLY)
