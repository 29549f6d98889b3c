import { FormParts } from '../../../../src/features/files/form-parts.js';

const form = Buffer.from(
  '--edge\r\nContent-Disposition: form-data; name="a"\r\n\r\n--edge\r\n' +
    `\r\n--edge\r\nContent-Disposition: form-data; name="file"; filename*=UTF-8''%e2%82%ac\r\n\r\nx\r\n--edge--\r\n`,
);

describe('The parts of a form', () => {
  it.each([1, 2, 7, 10_000])('are counted in pieces of %s bytes', (length) => {
    const counted = (max: number) => {
      const parts = new FormParts('edge', max);
      let isFew = true;
      for (let at = 0; at < form.length && isFew; at += length) isFew = parts.addPiece(form.subarray(at, at + length));
      return [isFew, parts.extendedName] as const;
    };
    expect(counted(3)).toEqual([true, '€']);
    expect(counted(2)[0]).toBe(false);
  });

  it('have no extended name if no file has one', () => {
    const parts = new FormParts('edge', 3);
    parts.addPiece(Buffer.from(`--edge\r\nX: 1\r\n\r\nContent-Disposition: form-data; filename*=UTF-8''a`));
    expect(parts.extendedName).toBeNull();
  });
});
