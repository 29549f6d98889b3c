import { deflateSync } from 'node:zlib';
import { inspectPdf } from '../../../../src/features/documents/pdf.js';
import { pdfOf } from '../../../support/basics/pdf.js';
import { processorMs } from '../../../support/processes/processor-time.js';

function faultOf(file: Buffer): string | null {
  const finding = inspectPdf(file);
  return 'fault' in finding ? finding.fault : null;
}

/** Makes a PDF with these objects in addition. */
function pdfWith(objects: string | Buffer, count = 1): Buffer {
  const each = Buffer.from(objects);
  return Buffer.concat([pdfOf(), ...Array.from({ length: count }, () => each)]);
}

/** `wrongBits` is applied to the last byte of the compressed content, which is part of its checksum. */
function objectStream(content: Buffer, wrongBits = 0): Buffer {
  const packed = deflateSync(content);
  packed.writeUInt8(packed.readUInt8(packed.length - 1) ^ wrongBits, packed.length - 1);
  return Buffer.concat([Buffer.from('<< /Type /ObjStm >>\nstream\r\n'), packed, Buffer.from('\nendstream\n')]);
}

describe('The pages of a PDF', () => {
  it.each<[string, Buffer, number]>([
    ['in a plain page tree', pdfOf({ pages: 3 }), 3],
    ['as many as allowed', pdfOf({ pages: 100 }), 100],
    ['in a compressed page tree', pdfOf({ pages: 7, isCompressed: true }), 7],
    ['after bytes before the header', Buffer.concat([Buffer.alloc(900, '\n'), pdfOf({ pages: 2 })]), 2],
    [
      'of the root, not of an inner tree',
      Buffer.concat([pdfOf({ pages: 5 }), Buffer.from('<</Type/Pages/Count 3/Parent 2 0 R>>')]),
      5,
    ],
    ['not of an outline', pdfWith('<< /Type /Outlines /Count 500 >>'), 1],
    ['of a file with object streams that never end', pdfWith('<< /Type /ObjStm >>\nstream\n', 400), 1],
    ['of a file whose text names its encryption', pdfWith('(/Encrypt is a key of the trailer)'), 1],
  ])('are counted: %s', (_, file, pages) => {
    expect(inspectPdf(file)).toEqual({ pages });
  });

  it.each<[string, Buffer, string]>([
    ['no PDF', Buffer.from('PK\x03\x04'), 'is not a PDF'],
    ['a header after other content', Buffer.concat([Buffer.alloc(2000), pdfOf()]), 'is not a PDF'],
    ['the beginning of a PDF', pdfOf().subarray(0, 200), 'is not a whole PDF: its end is missing'],
    ['an encrypted PDF', pdfOf({ trailer: '/Encrypt 9 0 R ' }), 'is encrypted: remove its password, or its protection'],
    ['too many pages', pdfOf({ pages: 101 }), 'has more than 100 pages'],
    ['too many compressed pages', pdfOf({ pages: 101, isCompressed: true }), 'has more than 100 pages'],
    ['no page', pdfOf({ pages: 0 }), 'is not a readable PDF: it has no pages'],
    [
      'page trees in many object streams',
      pdfWith(objectStream(Buffer.from('<< /Type /Pages /Count 1 >>'.repeat(100))), 4),
      'has more than 100 pages',
    ],
    ['endless page trees', pdfWith('<< /Type /Pages /Count 1 >>', 2000), 'has more than 100 pages'],
    [
      'a decompression bomb',
      pdfWith(objectStream(Buffer.alloc(64 * 1024 ** 2))),
      'has more than 100 pages, or they cannot be counted',
    ],
    [
      'streams that break after megabytes',
      pdfWith(objectStream(Buffer.alloc(2 * 1024 ** 2 - 10), 1), 9),
      'has more than 100 pages, or they cannot be counted',
    ],
    [
      'many dictionaries of one stream that breaks after megabytes',
      pdfWith(
        Buffer.concat([Buffer.from('/Type/ObjStm'.repeat(100)), objectStream(Buffer.alloc(2 * 1024 ** 2 - 10), 1)]),
      ),
      'has more than 100 pages, or they cannot be counted',
    ],
    [
      'many small decompression bombs',
      pdfWith(objectStream(Buffer.alloc(1024 ** 2)), 100),
      'has more than 100 pages, or they cannot be counted',
    ],
  ])('are refused: %s', (_, file, fault) => {
    expect(faultOf(file)).toBe(fault);
  });
});

describe('The inspection of a PDF', () => {
  const brackets = `${'>>'.repeat(900)}/Type /Pages ${'<<'.repeat(900)}`.repeat(290);

  it.each<[string, Buffer]>([
    ['dictionaries in each other', pdfWith(objectStream(Buffer.from(brackets)))],
    ['streams that break after megabytes', pdfWith(objectStream(Buffer.alloc(2 * 1024 ** 2 - 10), 1), 400)],
    ['32 MB of half names', pdfWith('/ObjSt'.repeat(5_000_000))],
  ])('takes less than half a second: %s', (_, file) => {
    const begunMs = processorMs();
    inspectPdf(file);
    expect(processorMs() - begunMs).toBeLessThan(500);
  });
});
