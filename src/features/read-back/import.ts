import { z } from 'zod';
import { imageFault, imageType, maxDocuments, maxImages, modelText, usageBody } from '../../shared/api/ask.js';
import { addedMessages, controlCharacter, maxTitleLength } from '../../shared/api/conversations.js';
import { documentTypes } from '../../shared/tables/document-types.js';
import { wellFormed } from '../../shared/text/well-formed.js';
import { maxAddedBytes } from '../../shared/turn-figures.js';

/** Limit of an import. Each turn is stored separately, and waits for those of other clients. */
const maxImported = 1000;

const importedImage = z
  .strictObject({ media_type: imageType, data: z.string('must be a string') })
  .superRefine(({ media_type, data }, context) => {
    const message = imageFault(media_type, data);
    if (message !== null) context.addIssue({ code: 'custom', path: ['data'], message });
  });

/** Returns why no service has exported an answer with these added messages, and the path of the fault; null if it may. */
function faultOfAdded(content: string, added: z.infer<typeof addedMessages>) {
  const isInPlace = ({ at }: { readonly at: number }, index: number) =>
    at >= (added[index - 1]?.at ?? 0) && at <= content.length;
  const misplaced = added.findIndex((each, index) => !isInPlace(each, index));
  if (misplaced >= 0)
    return { path: [misplaced, 'at'], message: 'must be a place in content, and not before the last' };
  const bytes = added.reduce((sum, { content: text }) => sum + Buffer.byteLength(text), 0);
  return bytes <= maxAddedBytes ? null : { path: [], message: `must have at most ${maxAddedBytes} bytes together` };
}

const importedMessage = z.discriminatedUnion('role', [
  z.strictObject({
    role: z.literal('user'),
    content: modelText,
    images: z.array(importedImage, 'must be a list').max(maxImages, `must be at most ${maxImages} images`).optional(),
    files: z
      .array(
        z.strictObject({ name: z.string(), media_type: z.enum(documentTypes), data: z.string() }),
        'must be a list',
      )
      .max(maxDocuments, `must be at most ${maxDocuments} files`)
      .optional(),
  }),
  z
    .strictObject({
      role: z.literal('assistant'),
      content: z.string('must be a string').overwrite(wellFormed),
      model: z
        .string('must be a string')
        .max(maxTitleLength, `must have at most ${maxTitleLength} characters`)
        .refine((model) => !controlCharacter.test(model), 'must be one line, without control characters')
        .optional(),
      usage: usageBody.optional(),
      interrupted: z.literal(true, 'must be true').optional(),
      added_messages: addedMessages.optional(),
    })
    .superRefine(({ content, added_messages = [] }, context) => {
      const fault = faultOfAdded(content, added_messages);
      if (fault !== null) context.addIssue({ ...fault, code: 'custom', path: ['added_messages', ...fault.path] });
    }),
]);

export const importRequest = z
  .strictObject({
    system: modelText.nullable().optional(),
    messages: z
      .array(importedMessage, 'must be a list')
      .min(2, 'must have a message of the user and an answer')
      .max(maxImported, `must be at most ${maxImported} messages`)
      .refine(
        (messages) =>
          messages.length % 2 === 0 && messages.every(({ role }, at) => (role === 'user') === (at % 2 === 0)),
        'must be a message of the user and an answer, in turn',
      )
      .meta({ description: 'Oldest first: a message of the user and an answer, in turn.' }),
    ...{ conversation_id: z.string().optional(), request_id: z.string().optional() },
  })
  .meta({
    id: 'ImportRequest',
    description: 'A conversation as `GET /chat/{conversation_id}/messages` returns it. Its ids are ignored.',
  });
export type ImportRequest = z.infer<typeof importRequest>;
