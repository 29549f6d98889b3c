import { consolePart } from '../../support/clients/console-parts.js';

interface DraftPart {
  readonly emptyDraft: object;
  readDraft(
    draft: object,
    target: object,
  ): { kind: string; message?: object; fault?: { field: string; message: string } };
}

const part = consolePart<DraftPart>('ask/draft.mjs');
const image = { name: 'a.png', mediaType: 'image/png', data: 'AAAA' };
const pdf = { name: 'a.pdf', mediaType: 'application/pdf', data: 'AAAA' };
const model = (capabilities?: object) => ({ name: 'Jay', ...(capabilities && { capabilities }) });

async function read(draft: object, target: object = {}) {
  const { readDraft, emptyDraft } = await part;
  return readDraft({ ...emptyDraft, text: 'Hello', ...draft }, { model: undefined, isReading: false, ...target });
}

describe('The draft of a message', () => {
  it('becomes a message, with its schema as a value', async () => {
    expect(await read({ schemaText: '{"type":"object"}', effort: 'low', images: [image] })).toEqual({
      kind: 'message',
      message: { text: 'Hello', images: [image], system: '', model: null, effort: 'low', schema: { type: 'object' } },
    });
  });

  it.each<[object, object, string, RegExp]>([
    [{ text: ' \n' }, {}, 'text', /^Write a message first\.$/],
    [{ text: '', images: [image] }, {}, 'text', /^Write a message first\.$/],
    [{ schemaText: '{"type":' }, {}, 'schema', /^The JSON Schema cannot be used\. This is not JSON/],
    [{ text: '', schemaText: '[]' }, {}, 'schema', /is an object\.$/],
    [{}, { isReading: true }, 'conversation', /still loading/],
    [
      { images: [image] },
      { model: model({ images: false, effort: true }) },
      'images',
      /^The model Jay takes no images/,
    ],
  ])('cannot be sent, and gives the reason: %j to %j', async (draft, target, field, message) => {
    const fault = { field, message: expect.stringMatching(message) };
    expect(await read(draft, target)).toEqual({ kind: 'fault', fault });
  });

  it('may have documents for a model without images', async () => {
    const { kind } = await read({ images: [pdf] }, { model: model({ images: false, effort: true }) });
    expect(kind).toBe('message');
  });

  it('omits an effort that the model does not support, and nothing if that is unknown', async () => {
    const efforts = [];
    for (const capabilities of [undefined, { images: true, effort: true }, { images: true, effort: false }]) {
      const { message } = await read({ effort: 'high', images: [image] }, { model: model(capabilities) });
      efforts.push((message as { effort: string | null }).effort);
    }
    expect(efforts).toEqual(['high', 'high', null]);
  });
});
