#!/usr/bin/env python3
"""The grammar for editors knows every word of the language: types, functions, reducers, directives, what the lexer knows; and colours what it should in a small program."""
import json
import os
import re
import sys

ROOT = os.environ['RED_SOURCE_DIR']


def read(*path):
    with open(os.path.join(ROOT, *path), encoding='utf-8') as f:
        return f.read()


def rules(node):
    """(name, pattern) of every rule."""
    if isinstance(node, dict):
        for key in ('match', 'begin', 'end'):
            if key in node:
                yield node.get('name', ''), node[key]
        for value in node.values():
            yield from rules(value)
    elif isinstance(node, list):
        for value in node:
            yield from rules(value)


def main():
    grammar = json.loads(read('docs', 'editors', 'red.tmLanguage.json'))
    found = [(name, re.compile(pattern)) for name, pattern in rules(grammar)]
    language = read('docs', 'language.md')
    types = re.findall(r'^[A-Z]\(\w+, "?(bool|[iu]\d+|b?f\d+\w*|c\d+)\b', read('compiler', 'types.def'), flags=re.M)
    directives = set(re.findall(r"^ +(?:directive  = |\| )'(\w+)' (?:ref|\(ref|NAME|expr)", language[language.index('    directive  = '):], flags=re.M))
    functions = re.search(r'\| functions \| types \|(.*?)\n\n', language, flags=re.S)[1]
    functions = {w for cell in re.findall(r'`(\w+)(?:\(|`)', functions) for w in [cell]}
    reducers = set(re.findall(r'^\| `(\w+)` \| (?:integers|floats|bool|\(number)', language, flags=re.M))
    wanted = [('storage.type.red', t) for t in types] + [('support.function.red', f'{f}(x)') for f in functions]
    wanted += [('support.function.reducer.red', f'{r}(j in m)') for r in reducers] + [('keyword.control.directive.red', d) for d in directives]
    wanted += [('keyword.control.red', w) for w in ('for', 'in', 'if', 'else')]
    wanted += [('constant.numeric.red', n) for n in ('12', '0x1F', '0.5', '1e-12')] + [('comment.line.double-slash.red', '// x')]
    wrong = [f'{name} does not match {text}' for name, text in wanted if not any(n == name and p.match(text) for n, p in found)]
    words_of_lexer = re.findall(r'^([a-z]+) +return (?:WORD\()?[A-Z]+', read('grammar', 'red.l'), flags=re.M)
    contexts = {'init': '(i in n; init = 1)', 'ordered': 'ordered reducer r', 'reducer': 'reducer r', 'kernel': 'kernel k', 'schedule': 'schedule k', 'min': 'min(x', 'max': 'max(x', 'fmin': 'fmin(x',
                'fmax': 'fmax(x', 'update': 'update(s', 'block': 'block.x', 'thread': 'thread.x'}
    for word in words_of_lexer:
        context = contexts.get(word, f'{word} x')
        at = context.index(word)
        wanted.append((word, context))
        if not any(m.start() <= at and at + len(word) <= m.end() for _, p in found for m in p.finditer(context)):
            wrong.append(f'nothing matches the word {word} of the lexer')
    for what, words, least in (('words of the lexer', words_of_lexer, 40), ('types', types, 17), ('functions', functions, 20), ('reducers', reducers, 13), ('directives', directives, 13)):
        if len(words) < least:
            wrong.append(f'only {len(words)} {what} were found: {sorted(words)}')
    print('\n'.join(wrong))
    print(f'{len(wanted) - len(wrong)} passed, {len(wrong)} failed')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
