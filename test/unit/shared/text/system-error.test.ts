import { fileFault, meaningOf } from '../../../../src/shared/text/system-error.js';

function failing(code: string | undefined, message: string): NodeJS.ErrnoException {
  return Object.assign(new Error(message), { code });
}

describe('An error of the operating system', () => {
  it.each([
    ['ENOENT', 'there is no such file or folder'],
    ['ENOTFOUND', 'no host has this name'],
    ['ENOSPC', 'the disk is full'],
  ])('is described in words: %s', (code, meaning) => {
    expect(meaningOf(failing(code, `${code}: as Node says it`))).toBe(meaning);
  });

  it('has its original message if its code is unknown or missing', () => {
    expect(meaningOf(failing('EWEIRD', 'EWEIRD: strange'))).toBe('EWEIRD: strange');
    expect(meaningOf(failing('EWEIRD', ''))).toBe('EWEIRD');
    expect(fileFault('/a', failing(undefined, 'must hold one token'))).toBe('must hold one token');
  });

  it('names the file, whose path Node sometimes omits', () => {
    expect(fileFault('/a', failing('EISDIR', 'EISDIR: illegal operation on a directory, read'))).toBe(
      '/a: it is a folder',
    );
  });
});
