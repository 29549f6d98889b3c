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
const fileCommands = ['view', 'create', 'str_replace', 'insert'];

const typedTools: Readonly<Record<string, ClientTool>> = {
  bash: {
    description: 'Runs a command in a bash session that stays open. restart begins a new one.',
    schema: { type: 'object', properties: { command: text, restart: { type: 'boolean' } } },
  },
  text_editor: {
    description: `Views and edits text files: ${editing}.`,
    schema: fileSchema(['command', 'path'], [...fileCommands, 'undo_edit']),
  },
  memory: {
    description: `Stores what is worth remembering in files below /memories: ${editing}, delete, rename old_path to new_path.`,
    schema: fileSchema(['command'], [...fileCommands, 'delete', 'rename'], { old_path: text, new_path: text }),
  },
};

function fileSchema(required: readonly string[], commands: readonly string[], more: object = {}) {
  const command = { type: 'string', enum: commands };
  return { type: 'object', properties: { command, ...edits, view_range: viewRange, ...more }, required };
}

/** Returns the tool of a type, or undefined if the client does not run it or must send its schema. */
export function clientToolOf(type: string | null | undefined): ClientTool | undefined {
  const [, name = ''] = /^(bash|text_editor|memory)_\d+$/.exec(type ?? '') ?? [];
  return typedTools[name];
}
