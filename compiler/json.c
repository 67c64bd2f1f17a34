#include "compiler/json.h"

#include <string.h>

size_t utf8_length(const char *at, const char *end) {
  const unsigned char *c = (const unsigned char *)at;
  size_t length = c[0] < 0x80                   ? 1
                  : c[0] >= 0xc2 && c[0] < 0xe0 ? 2
                  : (c[0] & 0xf0) == 0xe0       ? 3
                  : c[0] >= 0xf0 && c[0] < 0xf5 ? 4
                                                : 0;
  if (!length || (size_t)(end - at) < length) return 0;
  for (size_t i = 1; i < length; i++)
    if ((c[i] & 0xc0) != 0x80) return 0;
  if ((c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xed && c[1] >= 0xa0)) return 0; // overlong, surrogate
  if ((c[0] == 0xf0 && c[1] < 0x90) || (c[0] == 0xf4 && c[1] >= 0x90)) return 0; // overlong, above U+10FFFF
  return length;
}

void json_bytes(struct text *out, const char *string, size_t length) {
  const char *end = string + length;
  text_puts(out, "\"");
  while (string < end) {
    unsigned char c = (unsigned char)*string;
    size_t bytes = utf8_length(string, end);
    bool ends_script = c == '<' && end - string > 1 && (string[1] == '/' || string[1] == '!');
    if (c == '"' || c == '\\')
      text_printf(out, "\\%c", c);
    else if (c == '\n')
      text_puts(out, "\\n");
    else if (c == '\t')
      text_puts(out, "\\t");
    else if (c < ' ' || c == 0x7f || ends_script)
      text_printf(out, "\\u%04x", c);
    else if (bytes)
      text_append(out, string, bytes);
    else
      text_puts(out, "\\ufffd");
    string += bytes ? bytes : 1;
  }
  text_puts(out, "\"");
}

void json_string(struct text *out, const char *string) {
  if (string) json_bytes(out, string, strlen(string));
  else text_puts(out, "null");
}
