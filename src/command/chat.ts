import { modelList } from '../shared/api/models.js';
import { plain } from '../shared/text/paint.js';
import { ChatConversation } from './chat-conversation.js';
import { ChatInput } from './chat-input.js';
import { chatWords, readLine } from './chat-words.js';
import type { Client } from './client.js';
import { addressFlags, type Command, clientFor, modelFlag } from './command.js';
import { exitCodes } from './errors.js';
import type { Terminal } from './terminal.js';

export const chat: Command = {
  name: 'chat',
  synopsis: '',
  summary: 'have a conversation in the terminal',
  flags: {
    ...modelFlag,
    system: {
      type: 'string',
      short: 's',
      placeholder: '<text>',
      description: 'instructions, for a new conversation only',
    },
    conversation: { type: 'string', short: 'c', placeholder: '<id>', description: 'conversation to continue' },
    ...addressFlags,
  },
  maxPositionals: 0,
  notes: [
    `Ctrl-C cancels an answer, Ctrl-D leaves. Words of the chat: ${chatWords.map(({ word }) => word).join(', ')}.`,
    'A message that begins with a slash is sent with a second one before it. Messages can also come from a file or a pipe, one a line.',
  ],
  examples: ['prompt-relay chat', "prompt-relay chat -m opus --system 'Answer in one sentence.'"],
  run: async (args, context) => {
    const { terminal } = context;
    const conversation = new ChatConversation(await clientFor(args, context), args, context);
    if (terminal.isStdinTty) await greet(conversation, terminal);
    using input = new ChatInput(terminal.messagePaint.bold('you> '), terminal);
    const code = await converse(input, conversation, terminal);
    if (terminal.isStdinTty) terminal.message(terminal.messagePaint.dim(conversation.resumeHint));
    return code;
  },
};

const keysHelp = 'Ctrl-C cancels an answer, /help shows what else there is, Ctrl-D leaves.';

async function greet(conversation: ChatConversation, terminal: Terminal): Promise<void> {
  const model = conversation.model ?? (await defaultModel(conversation.client));
  const sentences = `Service: ${conversation.client.url}, model: ${plain(model)}\n${keysHelp}`;
  terminal.sentences(sentences, terminal.messagePaint.dim);
}

async function defaultModel(client: Client): Promise<string> {
  const { models } = await client.get('/models', modelList);
  return models.find((model) => model.default)?.id ?? "the model CLI's own";
}

/** At a terminal, the chat continues after a failed turn. With input from a file or a pipe, it ends there. */
async function converse(input: ChatInput, conversation: ChatConversation, terminal: Terminal): Promise<number> {
  for (;;) {
    const line = await input.nextLine();
    if (line === null && terminal.isStdinTty) terminal.message('');
    if (line === null) return exitCodes.ok;
    const meant = readLine(line);
    if (meant.type === 'leave') return exitCodes.ok;
    const code =
      meant.type === 'message'
        ? await input.runTurn((signal) => conversation.send(meant.text, signal))
        : await conversation.obey(meant);
    if (code !== exitCodes.ok && !terminal.isStdinTty) return code;
  }
}
