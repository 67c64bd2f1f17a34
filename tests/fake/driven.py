"""redc under the fake driver: what the scripts of this folder share."""

import argparse
import os
import subprocess
import tempfile

failures = []
passed = 0


def expect(name, condition, detail):
    global passed
    passed += bool(condition)
    if not condition:
        failures.append(f'FAILED {name}: {detail}')


class Driven:
    """redc, and the driver that it is given, in a folder of its own."""

    def __init__(self, redc, fake):
        self.redc, self.fake = os.path.abspath(redc), os.path.abspath(fake)

    def run(self, *args, setting='', library=None):
        if os.path.exists('log'):
            os.remove('log')
        env = dict(os.environ, RED_LIBCUDA=library or self.fake, FAKE_CUDA=f'log=log {setting}')
        return subprocess.run([self.redc, *args], env=env, capture_output=True, text=True, timeout=300)

    def calls(self):
        """Those of the last run to the driver."""
        if not os.path.exists('log'):
            return []
        with open('log', encoding='utf-8') as f:
            return f.read().split()


def run_tests(description, files, tests):
    """Calls the tests with a Driven in a folder with the files, by name; the exit status."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--redc', required=True)
    parser.add_argument('--fake', required=True)
    options = parser.parse_args()
    driven = Driven(options.redc, options.fake)
    with tempfile.TemporaryDirectory(prefix='red-fake-') as folder:
        os.chdir(folder)
        for name, text in files.items():
            with open(name, 'w', encoding='utf-8') as f:
                f.write(text)
        for test in tests:
            test(driven)
        os.chdir('/')
    print('\n'.join(failures + [f'{passed} passed, {len(failures)} failed']))
    return 1 if failures or not passed else 0
