import { createPart } from '../../../../src/features/retention/worker.js';

const client = 'key ada';

/** Calls the handler of GET /export, whose primary yields these lines. */
async function exported(lines: readonly string[]) {
  const asked: unknown[] = [];
  const primary = {
    stream: async function* (...call: unknown[]) {
      asked.push(call);
      for (const text of lines) yield { text };
    },
  };
  const sent: unknown[] = [];
  const res = {
    ...{ locals: { client, requestId: 'r' }, headersSent: false, once: () => {}, off: () => {} },
    writeHead: (status: number, headers: object) => {
      res.headersSent = true;
      sent.push([status, headers]);
    },
    write: (text: string) => sent.push(text) > 0,
    end: () => void sent.push('end'),
  };
  const { routes } = createPart({ primary, authority: {}, guards: {} } as never);
  const handler = routes.find(({ route }) => route === '/export')?.get?.at(-1);
  await handler?.({} as never, res as never, () => {});
  return { asked, sent };
}

it('GET /export sends what is stored of its client, line by line', async () => {
  const { asked, sent } = await exported(['{"kind":"export"}\n', '{"kind":"end"}\n']);
  expect(asked).toEqual([['exportData', { client, requestId: 'r' }]]);
  const head = [200, { 'Content-Type': 'application/x-ndjson' }];
  expect(sent).toEqual([head, '{"kind":"export"}\n', '{"kind":"end"}\n', 'end']);
});
