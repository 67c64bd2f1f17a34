#!/usr/bin/env python3
"""Shows that the golden runner can fail: each kind of check against a program that answers wrongly, each refusal."""

import os
import subprocess
import sys
import tempfile
import unittest

RUN = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'run.py')

# Stands in for redc: writes what its arguments name.
FAKE = '''#!/bin/sh
case $1 in
say) printf '%s\\n' "$2";;
warn) printf '%s\\n' "$2" >&2;;
cat) cat "$2";;
path) printf '%s/%s\\n' "$PWD" "$2";;
end) exit "$2";;
kill) kill -SEGV $$;;
sleep) sleep 30;;
file) printf '%s\\n' "$3" >"$2";;
esac
'''


class Golden(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.fake = os.path.join(self.folder.name, 'redc')
        self.test = os.path.join(self.folder.name, 'a.test')
        with open(self.fake, 'w', encoding='utf-8') as f:
            f.write(FAKE)
        os.chmod(self.fake, 0o755)

    def tearDown(self):
        self.folder.cleanup()

    def run_text(self, text, *options):
        with open(self.test, 'w', encoding='utf-8') as f:
            f.write(text)
        done = subprocess.run([sys.executable, RUN, '--redc', self.fake, *options, self.test],
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def passes(self, text, *options):
        status, out = self.run_text(text, *options)
        self.assertEqual(status, 0, out)
        return out

    def fails(self, text, why, *options):
        status, out = self.run_text(text, *options)
        self.assertEqual(status, 1, out)
        self.assertIn(why, out)

    def test_stdout(self):
        self.passes('=== a\n--- args\nsay hello\n--- stdout\nhello\n')
        self.fails('=== a\n--- args\nsay hullo\n--- stdout\nhello\n', '-hello\n+hullo')
        self.fails('=== a\n--- args\nsay hello\n--- stdout\n', '+hello')

    def test_stderr(self):
        self.passes('=== a\n--- args\nwarn oops\n--- stderr\noops\n')
        self.fails('=== a\n--- args\nwarn oops\n--- stderr\noh\n', '+oops')
        self.fails('=== unexpected\n--- args\nwarn oops\n--- stdout\n', '+oops')

    def test_exit(self):
        self.passes('=== a\n--- args\nend 3\n--- exit\n3\n')
        self.fails('=== a\n--- args\nend 3\n--- exit\n1\n', 'exit 3, expected exit 1')
        self.fails('=== a\n--- args\nend 3\n--- stdout\n', 'exit 3, expected exit 0')
        self.fails('=== a\n--- args\nkill\n--- stdout\n', 'killed by SIGSEGV')

    def test_count(self):
        head = '=== a\n--- args\nsay "shfl.sync x; shfl.sync.down; xshfl.sync /* shfl.sync */ // shfl.sync"\n--- count\n'
        self.passes(head + 'shfl.sync 2\nbar.sync 0\n>= 1 shfl\n')
        self.fails(head + 'shfl.sync 3\n', '"shfl.sync" stands 2 times, expected == 3')
        self.fails(head + '>= 3 shfl.sync\n', 'expected >= 3')
        self.fails(head + 'bar.sync 1\n', '"bar.sync" stands 0 times')
        self.fails(head + 'shfl.sync\n', 'cannot read the count')

    def test_contains_and_absent(self):
        self.passes('=== a\n--- args\nsay hello\n--- contains\nell\n--- absent\nhullo\n')
        self.fails('=== a\n--- args\nsay hello\n--- contains\nhullo\n', '"hullo" is missing')
        self.fails('=== a\n--- args\nsay hello\n--- absent\nell\n', '"ell" must not stand there')
        self.fails('=== a\n--- args\nwarn hello\n--- contains stderr\nhullo\n', '"hullo" is missing')

    def test_output_file(self):
        self.passes('=== a\n--- args\nfile k.ptx text\n--- output k.ptx\ntext\n')
        self.fails('=== a\n--- args\nfile k.ptx text\n--- output k.ptx\ntexts\n', '+text')
        self.passes('=== a\n--- args\nfile 7-k.ptx text\n--- output *-k.ptx\ntext\n')
        self.fails('=== a\n--- args\nfile k.ptx text\n--- input k.red\nx\n--- output k.*\ntext\n', 'or several')
        self.fails('=== a\n--- args\nfile k.ptx text\n--- output l.ptx\ntext\n', 'wrote no file "l.ptx"')

    def test_input_and_hidden_folder(self):
        self.passes('=== a\n--- args\ncat $FILE\n--- input\n\\--- args\n--- stdout\n\\--- args\n')
        self.passes('=== a\n--- args\ncat b.red\n--- input a.red\n1\n--- input b.red\n2\n--- stdout\n2\n')
        self.passes('=== a\n--- args\npath $FILE\n--- input k.red\nx\n--- stdout\nk.red\n')

    def test_timeout(self):
        self.fails('=== a\n--- args\nsleep\n--- stdout\n', 'still running after', '--timeout=0.5')

    def test_needs(self):
        text = '=== a\n--- args\nsay a\n--- needs\nllvm 19\n--- stdout\na\n'
        self.assertIn('1 passed, 0 failed, 0 skipped', self.passes(text))
        self.assertIn('0 passed, 0 failed, 1 skipped', self.passes(text, '--llvm=22'))
        self.passes(text.replace('llvm 19', 'sh'))
        self.assertIn('1 skipped', self.passes(text.replace('llvm 19', 'nosuchprogram')))

    def test_refusals(self):
        self.fails('', 'no case')
        self.fails('=== a\n--- args\nsay a\n', 'checks nothing')
        self.fails('=== a\n--- stdout\na\n', 'has no args')
        self.fails('=== a\n--- args\nsay a\n--- stduot\na\n', 'unknown section')
        self.fails('=== a\n--- args\nsay a\n--- contains\n', 'empty section')
        self.fails('=== a\n--- args\nsay a\n--- stdout\na\n--- stdout\na\n', 'second section')
        self.fails('=== a\n--- args\nsay a\n--- stdout\na\n=== a\n--- args\nsay a\n--- stdout\na\n', 'second case')
        self.fails('=== a\ntext\n--- args\nsay a\n--- stdout\na\n', 'text outside a section')
        self.fails('=== a\n--- args\nsay a\n--- needs\nllvm x\n--- stdout\na\n', 'unknown need')

    def test_update(self):
        head = 'comment\n\n'
        text = head + '=== a\n--- args\nsay hello\n--- stdout\nold\n\n=== b\n--- args\nend 2\n\n=== c\n--- args\nsay "--- x"\n'
        self.passes(text, '--update')
        with open(self.test, encoding='utf-8') as f:
            now = f.read()
        self.assertEqual(now, head + '=== a\n--- args\nsay hello\n--- stdout\nhello\n\n=== b\n--- args\nend 2\n'
                         '--- exit\n2\n\n=== c\n--- args\nsay "--- x"\n--- stdout\n\\--- x\n')
        self.passes(now)
        self.fails('=== a\n--- args\nsay hello\n--- contains\nhullo\n', '"hullo" is missing', '--update')


if __name__ == '__main__':
    unittest.main()
