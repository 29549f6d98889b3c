import { bufferedPrograms } from '../../../src/shared/config/buffered-programs.js';
import { shellWords } from '../../../src/shared/config/shell-words.js';

function curesOf(line: string): string[] {
  return bufferedPrograms(shellWords(line), {}).map((warning) => warning.replace(/ keeps .* stream:/, ':'));
}

const ofPython = 'add -u, or set PYTHONUNBUFFERED=1 and name it in MODEL_API_CLI_ENV';

describe('a program that keeps what it writes to a pipe', () => {
  it.each([
    ['/usr/bin/python3.12 model.py', `python3.12: ${ofPython}`],
    ['python model.py -u', `python: ${ofPython}`],
    ['stdbuf -oL python3 model.py', `python3: ${ofPython}`],
    ['env A=b nice -n 10 timeout 60s python3 model.py', `python3: ${ofPython}`],
    ["sed -e 's/a/b/'", 'sed: add -u'],
    ['egrep a', 'egrep: add --line-buffered'],
    ['jq -r .text', 'jq: add --unbuffered'],
    ["gawk '{print $1}'", 'gawk: call fflush() after each print'],
    ['tr a b', 'tr: put stdbuf -oL in front'],
  ])('is known: %s', (line, cure) => {
    expect(curesOf(line)).toEqual([cure]);
  });

  it('is found in the script of a shell, each once', () => {
    expect(curesOf(`bash -lc 'llm | sed s/a/b/ | sed s/c/d/; python3 x'`)).toEqual([
      'sed: add -u',
      `python3: ${ofPython}`,
    ]);
  });

  it.each([
    ['python3 -u model.py'],
    ['python3 -Bu model.py'],
    ['env PYTHONUNBUFFERED=1 python3 model.py'],
    ['sed -u s/a/b/'],
    ['sed -nu s/a/b/'],
    ['grep --line-buffered a'],
    ['jq --unbuffered .'],
    ["awk '{print; fflush()}'"],
    ['mawk -W interactive 1'],
    ['stdbuf -oL cut -c1'],
    ['ollama run {model}'],
    ['cat'],
    ['sh script.sh'],
    ["sh -c 'llm | tee log'"],
    [''],
  ])('is no other, and none that was cured: %s', (line) => {
    expect(curesOf(line)).toEqual([]);
  });
});
