#!/usr/bin/env python3
"""The pages of redc inspect --html in headless Chromium: page.py --redc build/redc [--shots FOLDER]

For a row sum, a softmax and a permute: the page is one file under 500 KB that names no other, it loads without a network and without an
error on the console, pointing at a line of the program marks lines in the three other panes, and the pass slider changes the IR.
Without Chromium the test is skipped (status 77).
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGES = {
    'rowsum': ['examples/01-rowsum.red', '-D', 'm=11'],
    'softmax': ['examples/03-softmax.red', '-D', 'm=1000'],
    'permute': ['examples/06-permute.red', '-D', 'T=f16'],
}
# Runs inside the page: its result becomes the title, which --dump-dom prints.
PROBE = '''
<script>
window.addEventListener('load', () => {
  const facts = [];
  try {
    const say = (name, ok) => facts.push(name + '=' + (ok ? 'ok' : 'FAILED'));
    say('ready', document.body.dataset.ready === 'yes');
    let linked = 0;
    for (const line of panes.source) {
      line.dispatchEvent(new MouseEvent('mouseover', {bubbles: true}));
      const marked = ['ir', 'cuda', 'ptx'].every(name => panes[name].some(other => other.classList.contains('same')));
      linked += marked;
    }
    say('linked', linked > 0);
    const slider = at('pass'), last = at('ir').textContent;
    slider.value = 0;
    slider.dispatchEvent(new Event('input'));
    say('passes', +slider.max > 3 && at('ir').textContent !== last);
    at('source').focus();
    at('source').dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowDown', bubbles: true}));
    say('keys', document.querySelector('#source .here') !== null);
    for (const button of at('tabs').children) {
      button.click();
      say(button.textContent, at('facts').childNodes.length > 0);
    }
    say('offline', performance.getEntriesByType('resource').length === 0);
  } catch (error) {
    facts.push('error=' + error.message);
  }
  document.title = 'FACTS ' + facts.join(' ');
});
</script>
'''


def browser():
    return next((path for path in map(shutil.which, ('chromium', 'chromium-browser', 'google-chrome')) if path), None)


def run_chromium(chromium, arguments, url):
    return subprocess.run([chromium, '--headless=new', '--no-sandbox', '--disable-gpu', '--hide-scrollbars', '--virtual-time-budget=4000',
                           '--enable-logging=stderr', '--v=0', *arguments, url], capture_output=True, text=True, timeout=120)


def check(name, arguments, redc, chromium, folder, shots):
    path = os.path.join(folder, f'{name}.html')
    made = subprocess.run([redc, 'inspect', *arguments, '--html', '-o', path], cwd=ROOT, capture_output=True, text=True)
    if made.returncode:
        return f'redc inspect: {made.stderr}'
    with open(path, encoding='utf-8') as file:
        page = file.read()
    if len(page) >= 500_000:
        return f'{len(page)} bytes'
    if re.search(r'(?:src|href)\s*=|url\(|@import|fetch\(', re.sub(r'<script type="application/json".*?</script>', '', page, flags=re.S)):
        return 'the page names something outside'
    probe = os.path.join(folder, f'{name}-probe.html')
    with open(probe, 'w', encoding='utf-8') as file:
        file.write(page.replace('</body>', PROBE + '</body>'))
    shown = run_chromium(chromium, ['--dump-dom'], f'file://{probe}')
    facts = re.search(r'<title>FACTS ([^<]*)</title>', shown.stdout)
    if not facts:
        return 'the page did not run: ' + shown.stderr[-400:]
    if 'FAILED' in facts[1] or 'error=' in facts[1]:
        return facts[1]
    if 'CONSOLE' in shown.stderr:
        return next(line for line in shown.stderr.splitlines() if 'CONSOLE' in line)
    if shots:
        os.makedirs(shots, exist_ok=True)
        run_chromium(chromium, ['--window-size=1500,1100', f'--screenshot={os.path.abspath(shots)}/{name}.png'], f'file://{path}')
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--redc', default=os.path.join(ROOT, 'build', 'redc'))
    parser.add_argument('--shots', help='also put a picture of each page into this folder')
    arguments = parser.parse_args()
    redc = os.path.abspath(arguments.redc)
    if not os.path.exists(os.path.join(os.path.dirname(redc), 'redc-clang')):
        print('skipped: redc-clang was not built')
        return 77
    if not browser():
        print('skipped: Chromium was not found')
        return 77
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, command in PAGES.items():
            problem = check(name, command, redc, browser(), folder, arguments.shots)
            if problem:
                failed += 1
                print(f'{name}: {problem}')
    print(f'{len(PAGES) - failed} passed, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
