# red_grammar(TARGET NAME): builds grammar/NAME.l and grammar/NAME.y into TARGET. Their output is grammar/NAME.lex.c,
# NAME.lex.h, NAME.tab.c and NAME.tab.h in the build folder, included as "grammar/NAME.tab.h".
find_program(RED_FLEX flex REQUIRED)
find_program(RED_BISON bison REQUIRED)

function(red_grammar target name)
  set(in ${PROJECT_SOURCE_DIR}/grammar/${name})
  set(out ${PROJECT_BINARY_DIR}/grammar/${name})
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/grammar)
  add_custom_command(OUTPUT ${out}.tab.c ${out}.tab.h
    COMMAND ${RED_BISON} -Wall -Werror --output=${out}.tab.c --header=${out}.tab.h ${in}.y
    DEPENDS ${in}.y VERBATIM)
  add_custom_command(OUTPUT ${out}.lex.c ${out}.lex.h
    COMMAND ${RED_FLEX} --outfile=${out}.lex.c --header-file=${out}.lex.h ${in}.l
    DEPENDS ${in}.l VERBATIM)
  set_source_files_properties(${out}.tab.c ${out}.lex.c TARGET_DIRECTORY ${target} PROPERTIES
    COMPILE_OPTIONS "-Wno-switch-enum;-Wno-shadow;-Wno-unused-function;-Wno-sign-compare;-Wno-unused-but-set-variable")
  target_sources(${target} PRIVATE ${out}.tab.c ${out}.tab.h ${out}.lex.c ${out}.lex.h)
endfunction()
