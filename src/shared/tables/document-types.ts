/** Program that prints the text of a document, for model CLIs that take no documents of its type. */
interface TextProgram {
  readonly program: string;
  /** Package of Debian that has the program. */
  readonly packageName: string;
  /** Arguments with which the program reads stdin and writes UTF-8 to stdout. */
  readonly options: readonly string[];
}

interface DocumentFacts {
  /** Name of the type for people. */
  readonly name: string;
  /** Text in ASCII with which a file of the type begins; null for a text. */
  readonly begin: string | null;
  /** Whether a model CLI that takes documents takes this type. If not, every model gets the text. */
  readonly isNative: boolean;
  /** Program that prints its text; null for a text. */
  readonly reader: TextProgram | null;
  /** Types and ends of names of the files that the console offers. */
  readonly offered: readonly string[];
}

/** Types of documents. A file that begins like none of them is a text. */
export const documentTable = {
  'application/pdf': {
    name: 'PDF',
    begin: '%PDF-',
    isNative: true,
    offered: ['application/pdf'],
    reader: {
      program: 'pdftotext',
      packageName: 'poppler-utils',
      options: ['-q', '-enc', 'UTF-8', '-l', '100', '-', '-'],
    },
  },
  'text/plain': {
    name: 'text',
    begin: null,
    isNative: true,
    reader: null,
    offered: ['text/*', '.json', '.md', '.xml', '.yaml', '.yml'],
  },
} as const satisfies Readonly<Record<string, DocumentFacts>>;

export type DocumentType = keyof typeof documentTable;
export const documentTypes = Object.keys(documentTable) as [DocumentType, ...DocumentType[]];
export const binaryTypes: readonly DocumentType[] = documentTypes.filter((type) => documentTable[type].begin !== null);

/** Type of document whose text a program reads. */
export type ReadType = {
  [T in DocumentType]: (typeof documentTable)[T]['reader'] extends null ? never : T;
}[DocumentType];
export const readTypes = documentTypes.filter((type): type is ReadType => documentTable[type].reader !== null);

/** Returns the type of a file that is not a text, by its first bytes; null if it begins like none of the types. */
export function binaryTypeOf(head: Buffer): DocumentType | null {
  return binaryTypes.find((type) => head.toString('latin1', 0, 64).startsWith(documentTable[type].begin ?? '')) ?? null;
}

/** Maximum size of a document that is not a text. */
export const maxBinaryBytes = 32 * 1024 * 1024;

/** Bytes at the start of a PDF in which its header may begin, because some programs write something before it. */
const pdfHeadBytes = 1024;

export function isPdf(file: Buffer): boolean {
  return file.subarray(0, pdfHeadBytes).includes(documentTable['application/pdf'].begin);
}
