// Runs calls of one SDK, the one that its argument names. Each line of stdin asks for one, each line of stdout tells how
// it went: { id, result, seen } or { id, failure, seen }, where `seen` holds the answers that came over HTTP.
import { createInterface } from 'node:readline';

const { faces, describeFailure } = await import(`./${process.argv[2]}.mjs`);

process.stdin.on('end', () => process.exit()); // whoever asked has gone
createInterface({ input: process.stdin }).on('line', (line) => void answer(JSON.parse(line)));
tell({ id: 0, node: process.version });

async function answer({ id, face, call, input }) {
  const seen = [];
  try {
    const result = await calls(faces[face], { ...input, fetch: watched(seen, input.losesFirst) })[call]();
    tell({ id, result, seen });
  } catch (error) {
    tell({ id, failure: { class: error.constructor.name, ...describeFailure(error) }, seen });
  }
}

/** Every face has what its SDK has; what all can be asked for stands here. */
function calls(face, input) {
  return {
    ...Object.fromEntries(Object.entries(face).map(([name, run]) => [name, () => run(input)])),
    /** Streams, and aborts when the first text has come. */
    async abort() {
      const controller = new AbortController();
      const { signal } = controller;
      const texts = [];
      const onText = (text) => {
        texts.push(text);
        controller.abort();
      };
      const ending = await face.stream({ ...input, signal, onText }).then(
        () => 'ended',
        (error) => error.name,
      );
      return { texts, ending };
    },
    /** A conversation with these user texts, each answer in it. */
    async turns() {
      const messages = [];
      const texts = [];
      for (const content of input.said) {
        messages.push({ role: 'user', content });
        const { text } = await face.ask({ ...input, messages });
        messages.push({ role: 'assistant', content: text });
        texts.push(text);
      }
      return { texts };
    },
  };
}

const kept = [
  'idempotency-replayed',
  'x-session',
  'x-request-id',
  'x-should-retry',
  'x-ignored-parameters',
  'retry-after',
];

/** The fetch of Node, whose answers are noted. It may lose the first one with its connection, once it was sent as a whole. */
function watched(seen, losesFirst = false) {
  let isFirst = true;
  return async (...args) => {
    const response = await fetch(...args);
    const headers = kept.map((name) => [name, response.headers.get(name)]).filter(([, value]) => value !== null);
    if (isFirst && losesFirst) {
      isFirst = false;
      await response.arrayBuffer();
      throw new TypeError('the connection was lost');
    }
    seen.push({ status: response.status, ...Object.fromEntries(headers) });
    return response;
  };
}

function tell(line) {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}
