// Runs calls of the SDK that its argument names. Each line of stdin requests a call, each line of stdout reports its
// outcome: { id, result, seen } or { id, failure, seen }, where `seen` holds the HTTP responses.
import { createInterface } from 'node:readline';

const { faces, describeFailure } = await import(`./${process.argv[2]}.mjs`);

process.stdin.on('end', () => process.exit()); // the test process has exited
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

/** Returns the calls of an SDK: its special ones, and the ones shared by all SDKs. */
function calls(face, input) {
  return {
    ...Object.fromEntries(Object.entries(face).map(([name, run]) => [name, () => run(input)])),
    /** Streams, and aborts when the first text has arrived. */
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
    /** Runs a conversation with these user texts; each request contains the answers before it. */
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

/**
 * Wraps the fetch of Node, and records its responses. With `losesFirst`, the first connection breaks after the whole
 * request was sent.
 */
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
