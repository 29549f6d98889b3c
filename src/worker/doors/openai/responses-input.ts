import { invalid } from '../../../shared/errors.js';
import type { Message } from '../../../shared/job.js';
import { joined, lastOfUser, messageOf, textAt } from '../parts.js';
import { type PartForms, partsOf, textOf } from './content.js';
import type { InputItem, ResponsesRequest } from './responses-schema.js';

const responseParts: PartForms = {
  texts: { input_text: 'text', output_text: 'text', text: 'text', refusal: 'refusal' },
  image: { type: 'input_image', urlIn: ({ image_url: url }) => url, urlField: 'image_url' },
};

/** What can't be done with items that need more than a conversation. */
const refused: Readonly<Record<string, string>> = {
  item_reference:
    'item_reference is not possible: nothing is kept here. Send the messages themselves (Vercel AI SDK: set store to false)',
  function_call_output:
    'function_call_output is not possible: there are no tools here. Send the result in a message of the user',
};

type SaidItem =
  | { readonly kind: 'told'; readonly text: string }
  | { readonly kind: 'spoken'; readonly message: Message }
  | { readonly kind: 'passed-over' };

/** What is said in the request. Throws `validation_error` that names the field. */
export function spokenIn({ input, instructions }: ResponsesRequest) {
  const said = typeof input === 'string' ? [ofUser(input)] : input.map((item, index) => saidBy(item, `input.${index}`));
  const told = said.flatMap((each) => (each.kind === 'told' ? [each.text] : []));
  const spoken = said.flatMap((each) => (each.kind === 'spoken' ? [each.message] : []));
  const system = joined([textAt(instructions ?? '', 'instructions'), ...told]);
  return { system, ...lastOfUser(spoken, 'input') };
}

function ofUser(input: string): SaidItem {
  return { kind: 'spoken', message: { role: 'user', text: textAt(input, 'input') } };
}

/** What the model once thought is not told to it again. A call that was made stands in the history as its arguments. */
function saidBy(item: InputItem, path: string): SaidItem {
  const type = item.type ?? 'message';
  if (type === 'message') return messageSaid(item, path);
  if (type === 'reasoning') return { kind: 'passed-over' };
  if (type !== 'function_call')
    throw invalid(`${path}.type`, Object.hasOwn(refused, type) ? (refused[type] ?? '') : unknownItem);
  return { kind: 'spoken', message: { role: 'assistant', text: textAt(item.arguments, `${path}.arguments`) } };
}

const unknownItem = 'must be message: there are no tools here, and nothing is kept';

function messageSaid({ role, content }: InputItem, path: string): SaidItem {
  if (content == null) throw invalid(`${path}.content`, 'must be sent');
  const at = `${path}.content`;
  if (role === 'system' || role === 'developer') return { kind: 'told', text: textOf(content, at, responseParts) };
  if (role !== 'user' && role !== 'assistant')
    throw invalid(`${path}.role`, 'must be system, developer, user or assistant');
  return { kind: 'spoken', message: messageOf(role, partsOf(content, at, responseParts, role === 'user')) };
}
