import { deflateSync } from 'node:zlib';

interface PdfForm {
  readonly pages?: number;
  /** Text of each page; its number follows. */
  readonly text?: string;
  /** Whether the page tree is in a compressed object stream, as newer programs write it. */
  readonly isCompressed?: boolean;
  /** Number of pages that the page tree claims, if it is another one. */
  readonly count?: number | string;
  readonly trailer?: string;
  /** Bytes of an attachment that no page shows. */
  readonly fillerBytes?: number;
}

/** Makes a small PDF. */
export function pdfOf(form: PdfForm = {}): Buffer {
  const { pages = 1, text = 'Page', count = pages, trailer = '', fillerBytes = 0 } = form;
  const first = 4;
  const kids = Array.from({ length: pages }, (_, index) => `${first + 2 * index} 0 R`).join(' ');
  const tree = `<< /Type /Pages /Kids [${kids}] /Count ${count} >>`;
  const font = '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>';
  const pageObjects = Array.from({ length: pages }, (_, index) => [
    `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents ${first + 2 * index + 1} 0 R /Resources << /Font << /F1 3 0 R >> >> >>`,
    stream(Buffer.from(`BT /F1 12 Tf 72 720 Td (${text} ${index + 1}) Tj ET`)),
  ]).flat();
  const objects = ['<< /Type /Catalog /Pages 2 0 R >>', tree, font, ...pageObjects];
  if (form.isCompressed) {
    objects[1] = 'null';
    objects.push(stream(deflateSync(`2 0 ${tree}`), `/Type /ObjStm /N 1 /First 4 /Filter /FlateDecode `));
  }
  if (fillerBytes > 0) objects.push(stream(Buffer.alloc(fillerBytes, 'filler ')));
  return written(objects, trailer);
}

function stream(data: Buffer, fields = ''): Buffer {
  return Buffer.concat([
    Buffer.from(`<< ${fields}/Length ${data.length} >>\nstream\n`),
    data,
    Buffer.from('\nendstream'),
  ]);
}

/** Writes the objects as a file, with the table of their places. */
function written(objects: readonly (string | Buffer)[], trailer: string): Buffer {
  const pieces = [Buffer.from('%PDF-1.5\n')];
  const places: number[] = [];
  let length = 9;
  for (const [index, object] of objects.entries()) {
    const piece = Buffer.concat([Buffer.from(`${index + 1} 0 obj\n`), Buffer.from(object), Buffer.from('\nendobj\n')]);
    places.push(length);
    pieces.push(piece);
    length += piece.length;
  }
  const rows = places.map((place) => `${String(place).padStart(10, '0')} 00000 n \n`).join('');
  const size = objects.length + 1;
  const table = `xref\n0 ${size}\n0000000000 65535 f \n${rows}`;
  const end = `trailer << /Size ${size} /Root 1 0 R ${trailer}>>\nstartxref\n${length}\n%%EOF\n`;
  return Buffer.concat([...pieces, Buffer.from(table + end)]);
}

/** Returns the content of a page that shows this text. */
export function pageText(text: string): string {
  return `BT /F1 12 Tf 72 720 Td (${text}) Tj ET\n`;
}

/** Makes a PDF of one page, whose content and other objects are these. */
export function pdfWith(content: Buffer, pages = '<< /Type /Pages /Kids [3 0 R] /Count 1 >>', catalog = ''): Buffer {
  const font = '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>';
  const page =
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>';
  const stream = deflateSync(content);
  return Buffer.concat([
    Buffer.from(
      `%PDF-1.5\n1 0 obj << /Type /Catalog /Pages 2 0 R ${catalog}>> endobj\n2 0 obj ${pages} endobj\n` +
        `3 0 obj ${page} endobj\n5 0 obj ${font} endobj\n4 0 obj << /Filter /FlateDecode /Length ${stream.length} >>\nstream\n`,
    ),
    stream,
    Buffer.from('\nendstream endobj\ntrailer << /Root 1 0 R /Size 6 >>\nstartxref\n0\n%%EOF\n'), // readers rebuild the table
  ]);
}

/** Makes a PDF of 3 KB that takes long to inspect. `title` makes it differ from others. */
export function slowPdf(title = ''): Buffer {
  const brackets = `${'>>'.repeat(900)}/Type /Pages ${'<<'.repeat(900)}`.repeat(290);
  return Buffer.concat([
    Buffer.from(`%PDF-1.5 ${title}\n<< /Type /ObjStm >>\nstream\n`),
    deflateSync(brackets),
    Buffer.from('\nendstream\nstartxref\n0\n%%EOF\n'),
  ]);
}
