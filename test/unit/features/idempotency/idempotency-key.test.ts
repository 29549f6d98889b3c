import type { KeyedRequest } from '../../../../src/features/idempotency/keyed-request.js';
import type { Handler } from '../../../../src/worker/http/exchange.js';
import { answerOf } from '../../../support/doors/express-server.js';
import { keyGuard } from '../../../support/doors/key-guard.js';
import { FakePrimary } from '../../../support/jobs/fake-primary.js';

const told: Handler = (_req, res) => {
  res.json({ key: (res.locals.recorder as KeyedRequest | null)?.key ?? null });
};

async function keyOf(...headers: string[]): Promise<unknown> {
  const { status, body } = await answerOf([keyGuard(new FakePrimary().asPrimary), told], headers);
  return status === 200 ? body.key : { status, details: body.details };
}

function refused(message: string) {
  return { status: 400, details: [{ path: 'Idempotency-Key', message }] };
}

const malformed = refused('must be printable ASCII, bare or as a quoted string');
const wrongLength = refused('must have 1 to 255 characters');

describe('An Idempotency-Key', () => {
  it.each([
    ['bare', '8e03978e-40d5-43e8-bc93-6894a57f9324', '8e03978e-40d5-43e8-bc93-6894a57f9324'],
    ['quoted', '"8e03978e-40d5-43e8-bc93-6894a57f9324"', '8e03978e-40d5-43e8-bc93-6894a57f9324'],
    ['with escapes', String.raw`"a \"b\" \\ c"`, String.raw`a "b" \ c`],
    ['with marks in its middle', `it's ~{"x":1}, ok?`, `it's ~{"x":1}, ok?`],
    ['of one character', 'x', 'x'],
    ['of as many as it may have', 'x'.repeat(255), 'x'.repeat(255)],
    ['of as many, quoted', `"${'x'.repeat(255)}"`, 'x'.repeat(255)],
    ['of spaces, quoted', '"  "', '  '],
  ])('is accepted %s', async (_name, header, key) => {
    expect(await keyOf(`idempotency-KEY: ${header}`)).toBe(key);
  });

  it('is optional', async () => {
    expect(await keyOf()).toBeNull();
  });

  it.each([
    ['empty', '', malformed],
    ['of nothing but quotes', '""', wrongLength],
    ['too long', 'x'.repeat(256), wrongLength],
    ['too long, quoted', `"${'x'.repeat(256)}"`, wrongLength],
    ['with a quote that does not end', '"abc', malformed],
    ['with a quote that ends too early', '"abc"def', malformed],
    ['with parameters', '"abc";a=1', malformed],
    ['with an escape of its own', String.raw`"a\b"`, malformed],
    ['with a tab', 'a\tb', malformed],
    ['that is not ASCII', 'schlüssel', malformed],
  ])('is rejected %s', async (_name, header, answer) => {
    expect(await keyOf(`Idempotency-Key: ${header}`)).toEqual(answer);
  });

  it('is rejected if it is sent twice, even the same', async () => {
    const twice = ['Idempotency-Key: a', 'idempotency-key: a'];
    expect(await keyOf(...twice)).toEqual(refused('must be sent once'));
  });
});
