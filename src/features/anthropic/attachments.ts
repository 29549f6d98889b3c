import { z } from 'zod';
import { invalid } from '../../shared/errors.js';
import { issueWords } from '../../shared/text/issue-words.js';
import { isObject } from '../../shared/text/json-schema.js';
import { mustBeSent } from '../../worker/http/body.js';
import { documentOf, textDocument } from '../../worker/jobs/documents.js';
import type { FileForm, FileForms } from '../../worker/jobs/file-references.js';
import { imageOf, type ShownPart } from '../../worker/jobs/message-parts.js';
import { joined, plainText, textAt } from '../doors/messages.js';
import type { Block } from './messages-request.js';

/** Images and documents in messages of Anthropic's API. */

const string = z.string('must be a string');

/** Returns how an image or a document refers to a file, whose bytes then stand beside its id. */
function fileForm(isDocument: boolean): FileForm {
  return {
    isDocument,
    path: '.source',
    field: 'data',
    referenceIn: ({ source }) => (isObject(source) && source.type === 'file' ? source : null),
    fill: (source, { name, mediaType, data }) => Object.assign(source, { name, media_type: mediaType, data }),
  };
}

export const fileForms: FileForms = { image: fileForm(false), document: fileForm(true) };

/** File as `fileForms` completes it. */
const fileSource = z.looseObject({
  type: z.literal('file'),
  name: string.default(''),
  media_type: string.default(''),
  data: string.default(''),
});

const base64Source = z.looseObject({ type: z.literal('base64'), media_type: string, data: string });

const imageBlock = z.looseObject({
  source: z.discriminatedUnion(
    'type',
    [base64Source, fileSource],
    'must have the type base64 or file: the service does not fetch images',
  ),
});

/** Maximum length of a document's context. Anthropic suggests it for metadata that are too long for the title. */
const maxContextLength = 10_000;

const contentPart = z.looseObject({ type: string });

const documentBlock = z.looseObject({
  source: z.discriminatedUnion(
    'type',
    [
      base64Source,
      z.looseObject({ type: z.literal('text'), media_type: string.nullish(), data: string }),
      z.looseObject({
        type: z.literal('content'),
        content: z.union([z.string(), z.array(contentPart)], 'must be text, or a list of blocks with a type each'),
      }),
      fileSource,
      z.looseObject({ type: z.literal('url') }),
    ],
    'must have the type base64, text, content or file',
  ),
  title: string.nullish(),
  context: plainText.max(maxContextLength, `must be at most ${maxContextLength} characters`).nullish(),
  citations: z.looseObject({ enabled: z.boolean('must be true or false').nullish() }, 'must be an object').nullish(),
});

type DocumentBlock = z.infer<typeof documentBlock>;

/**
 * Returns the image or the document of a block; null for any other block. `mayCite`: whether the answer can cite the
 * document. Throws `validation_error`.
 */
export function attachmentOf(block: Block, at: string, mayCite: boolean): ShownPart[] | null {
  if (block.type === 'image') return [imagePart(block, at)];
  if (block.type !== 'document') return null;
  const sent = parse(documentBlock, block, at, 'must be a document');
  const context = sent.context?.trim() ?? '';
  const fields = {
    ...(context !== '' && { context }),
    ...(mayCite && sent.citations?.enabled === true && { citations: true as const }),
  };
  return documentParts(sent, at).map((part) => (part.type === 'document' ? { ...part, ...fields } : part));
}

/** Whether a block requests citations of its document. */
export function wantsCitations({ type, citations }: Block): boolean {
  return type === 'document' && isObject(citations) && citations.enabled === true;
}

function imagePart(block: Block, at: string): ShownPart {
  const { source } = parse(imageBlock, block, at, 'must be an image');
  return imageOf(source.media_type, source.data, source.type === 'file' ? `${at}.source.file_id` : `${at}.source`);
}

function documentParts({ source, title }: DocumentBlock, at: string): ShownPart[] {
  const path = `${at}.source`;
  switch (source.type) {
    case 'base64':
      return [{ type: 'document', ...documentOf(source.media_type, source.data, `${path}.data`, title) }];
    case 'text':
      return [{ type: 'document', ...textDocument(source.data, `${path}.data`, title) }];
    case 'content':
      return contentParts(source.content, `${path}.content`, title);
    case 'file':
      return [
        { type: 'document', ...documentOf(source.media_type, source.data, `${path}.file_id`, title ?? source.name) },
      ];
    case 'url':
      throw invalid(`${path}.url`, 'cannot be used: the service does not fetch documents, so send it in base64');
  }
}

/** Returns a document with the texts of a list of blocks, and the images of the list after it. */
function contentParts(
  content: Extract<DocumentBlock['source'], { type: 'content' }>['content'],
  path: string,
  title: string | null | undefined,
): ShownPart[] {
  const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : content;
  const texts = blocks.map((block, index) =>
    block.type === 'text' ? textAt(block.text, `${path}.${index}.text`) : '',
  );
  const images = blocks.flatMap((block, index) => {
    const at = `${path}.${index}`;
    if (block.type === 'text') return [];
    if (block.type === 'image') return [imagePart(block, at)];
    throw invalid(`${at}.type`, 'must be text or image');
  });
  return [{ type: 'document', ...textDocument(joined(texts) ?? '', path, title) }, ...images];
}

function parse<T>(schema: z.ZodType<T>, block: Block, at: string, otherwise: string): T {
  const result = schema.safeParse(block, { reportInput: true, error: issueWords });
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const isMissing = issue?.code === 'invalid_type' && issue.input === undefined;
  throw invalid([at, ...(issue?.path ?? [])].join('.'), isMissing ? mustBeSent : (issue?.message ?? otherwise));
}
