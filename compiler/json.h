// Text in JSON, for messages, reports and pages.
#ifndef RED_COMPILER_JSON_H
#define RED_COMPILER_JSON_H

#include "compiler/arena.h"

// The bytes of the UTF-8 character at `at`; 0 where these bytes are none.
size_t utf8_length(const char *at, const char *end);

// Appends a JSON string. Bytes that are not UTF-8 become U+FFFD, so that it is always valid, and what would end a script element of a page is
// escaped. NULL: null.
void json_string(struct text *out, const char *string);
void json_bytes(struct text *out, const char *bytes, size_t length);

#endif
