# cmake -DINPUT=FILE -DOUTPUT=FILE -DNAME=NAME -P embed.cmake: a file as the bytes of a C array that ends with 0.
file(READ ${INPUT} bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n" bytes "${bytes}")
file(WRITE ${OUTPUT} "static const unsigned char ${NAME}[] = {\n${bytes}0};\n")
