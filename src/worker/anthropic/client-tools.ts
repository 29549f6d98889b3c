/**
 * Tool of Anthropic's API that the client runs but sends without a schema, because Anthropic's models know its type.
 * The model CLI gets it like any other tool.
 */
interface ClientTool {
  readonly description: string;
  readonly schema: Readonly<Record<string, unknown>>;
}

const text = { type: 'string' };
const line = { type: 'integer' };
const viewRange = { type: 'array', items: line, description: 'The first and the last line to view; -1: to the end.' };
const edits = { path: text, file_text: text, old_str: text, new_str: text, insert_line: line, insert_text: text };
const editing =
  'view a file or a folder, create a file, replace old_str (found once) by new_str, insert after insert_line';

const families: readonly (readonly [type: RegExp, tool: ClientTool])[] = [
  [
    /^bash_\d+$/,
    {
      description: 'Runs a command in a bash session that stays open. restart begins a new one.',
      schema: { type: 'object', properties: { command: text, restart: { type: 'boolean' } } },
    },
  ],
  [
    /^text_editor_\d+$/,
    {
      description: `Views and edits text files: ${editing}.`,
      schema: {
        type: 'object',
        properties: {
          command: { type: 'string', enum: ['view', 'create', 'str_replace', 'insert', 'undo_edit'] },
          ...edits,
          view_range: viewRange,
        },
        required: ['command', 'path'],
      },
    },
  ],
  [
    /^memory_\d+$/,
    {
      description: `Stores what is worth remembering in files below /memories: ${editing}, delete, rename old_path to new_path.`,
      schema: {
        type: 'object',
        properties: {
          command: { type: 'string', enum: ['view', 'create', 'str_replace', 'insert', 'delete', 'rename'] },
          ...edits,
          view_range: viewRange,
          old_path: text,
          new_path: text,
        },
        required: ['command'],
      },
    },
  ],
];

/** Returns the tool of a type, or undefined if the client does not run it or must send its schema. */
export function clientToolOf(type: string | null | undefined): ClientTool | undefined {
  return families.find(([form]) => form.test(type ?? ''))?.[1];
}
