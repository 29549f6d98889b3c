// The adapter of jay-agent.cjs, an invented agent: an example of adapters.md.

const maxLineLength = 1024 * 1024;

/** Why the agent has failed, in its words and in those of the service. */
const reasons = { busy: 'overloaded', login: 'auth', 'unknown-model': 'model_unknown', 'too-long': 'prompt_too_long' };

/** @param {object} message */
function lineOf(message) {
  return `${JSON.stringify(message)}\n`;
}

/** @type {import('prompt-relay/adapter').CreateAdapter} */
exports.createAdapter = ({ command, extraArgs, kit }) => ({
  name: 'jay',
  command: command ?? ['jay-agent'],
  credentialVariable: null,
  env: {},
  models: null,
  async learn(consult) {
    const { stdout } = await consult(['--version']);
    const version = /^jay (\S+)/.exec(stdout)?.[1] ?? null;
    if (version === null) throw new Error('this is not jay: it does not tell its version');
    return {
      version,
      extras: {},
      plan: () => ({ args: extraArgs, files: [] }), // a turn tells the rest, so that one process serves all
      protocol: () => protocol(kit),
      check: async (ask) => ((await modelsOf(ask, kit)) === null ? 'jay does not answer' : null),
      listModels: (ask) => modelsOf(ask, kit),
    };
  },
});

/**
 * @param {import('prompt-relay/adapter').Consult} consult
 * @param {import('prompt-relay/adapter').AdapterKit} kit
 */
async function modelsOf(consult, kit) {
  const isEnough = (/** @type {string} */ stdout) => stdout.includes('"models"') && stdout.endsWith('\n');
  const { stdout } = await consult([], lineOf({ op: 'models' }), isEnough);
  for (const line of stdout.split('\n')) {
    const message = /** @type {any} */ (kit.jsonOf(line));
    if (message?.op !== 'models') continue;
    return message.models.map((/** @type {string} */ id, /** @type {number} */ at) => ({
      id,
      name: id,
      default: at === 0,
    }));
  }
  return null;
}

/**
 * @param {import('prompt-relay/adapter').AdapterKit} kit
 * @returns {import('prompt-relay/adapter').Protocol}
 */
function protocol(kit) {
  let turn = 0;
  const lines = new kit.JsonLines(kit.jsonOf, (message) => [...eventsOf(message, turn, kit)], maxLineLength);
  return {
    opening: () => lineOf({ op: 'hello' }),
    writer: {
      write({ text, system, history, model }, number) {
        turn = number;
        const past = history.map((message) => ({ who: message.role, text: message.text }));
        const line = lineOf({ op: 'say', id: number, model, system, past, text });
        return { text: line, stdin: 'keep-open' };
      },
    },
    decoder: {
      hasBegun: true,
      read: (chunk) => lines.read(chunk),
      exit: (exit) => lines.exit(exit),
    },
  };
}

/**
 * @param {any} message
 * @param {number} turn
 * @param {import('prompt-relay/adapter').AdapterKit} kit
 * @returns {Generator<import('prompt-relay/adapter').DecoderEvent>}
 */
function* eventsOf(message, turn, kit) {
  if (message?.op === 'may-i') {
    yield { type: 'request-refused', request: message.what === 'shell' ? 'terminal' : 'other' };
    yield { type: 'reply', text: lineOf({ op: 'no', id: message.id }) };
  }
  if (!['piece', 'done', 'fail'].includes(message?.op)) return; // 'ready', and what later versions may say
  if (message.id !== turn) yield { type: 'stray' };
  else if (message.op === 'piece') yield { type: 'text-delta', text: message.text };
  else if (message.op === 'fail') {
    const reason = /** @type {Record<string, any>} */ (reasons)[message.why] ?? 'other';
    const words = `jay reports: ${message.text}`;
    // `login` is a code: whatever was asked, nobody is logged in.
    if (reason === 'auth') yield { type: 'turn-failed', reason, message: words, scope: 'account' };
    else yield { type: 'turn-failed', reason, message: words };
  } else {
    const { in: inputTokens, out: outputTokens } = message.words;
    const usage = { ...kit.unknownUsage, inputTokens, outputTokens };
    yield { type: 'turn-end', text: null, model: message.model, usage };
  }
}
