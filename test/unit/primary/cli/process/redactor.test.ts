import { createHash } from 'node:crypto';
import { Redactor } from '../../../../../src/primary/cli/process/redactor.js';

const token = 'tok/en+of=the&account';
const digestOf = (key: string) => createHash('sha256').update(key).digest('hex');
const keys = ['pr_Zm9vYmFyYmF6cXV4', 'a.key/with:marks='];
const digests = new Set(keys.map(digestOf));
const redactor = new Redactor(
  [
    { name: 'TOKEN', value: token },
    { name: 'SHORT', value: 'abc' },
    { name: 'PEM', value: '-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQ\nEFAASC\n-----END KEY-----' },
  ],
  (digest) => digests.has(digest),
);

describe('A redactor', () => {
  it.each([
    ['nothing to hide: abc', 'nothing to hide: abc'],
    [`${token}${token} twice, ${token}`, '[TOKEN][TOKEN] twice, [TOKEN]'],
    [`a ${encodeURIComponent(token)} in a URL`, 'a [TOKEN] in a URL'],
    ['as it is wrapped: tok/en+of\n   =the&account\nand more', 'as it is wrapped: [TOKEN]\nand more'],
    ['in three: tok/en\n+of=the\n&account', 'in three: [TOKEN]'],
    ['cut at the end: tok/en+o', 'cut at the end: [TOKEN]'],
    ['too little to tell: tok/', 'too little to tell: tok/'],
    ['one line of it: MIIEvQIBADANBgkqhkiG9w0BAQ', 'one line of it: [PEM]'],
    ['in JSON: "-----BEGIN KEY-----\\nMIIEvQIBADANBgkqhkiG9w0BAQ\\nEFAASC\\n-----END KEY-----"', 'in JSON: "[PEM]"'],
    ['-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQ\nEFAASC\n-----END KEY-----\n', '[PEM]\n'],
  ])('removes known values from a text: %j', (text, redacted) => {
    expect(redactor.redact(text)).toBe(redacted);
  });

  it.each([
    [`key ${keys[0]}.`, 'key [API key].'],
    [`{"x-api-key":"${keys[0]}"}`, '{"x-api-key":"[API key]"}'],
    [`X-API-Key=${keys[0]}&a=b`, 'X-API-Key=[API key]&a=b'],
    [`wrapped pr_Zm9vYm\n  FyYmF6cXV4\nnext`, 'wrapped [API key]\nnext'],
    [`${keys[0]}\nnext`, '[API key]\nnext'],
    [`with marks: ${keys[1]} is one`, 'with marks: [API key] is one'],
    [`${keys[0]}x and x${keys[0]}`, `${keys[0]}x and x${keys[0]}`],
  ])('removes API keys from a text, of which it knows only the digests: %j', (text, redacted) => {
    expect(redactor.redact(text)).toBe(redacted);
  });

  it('shows a text from an offset on, and recognizes a secret that begins earlier', () => {
    const text = `before ${token} after`;
    for (const from of [7, 8, 20, 27]) expect(redactor.redact(text, from)).toBe('[TOKEN] after');
    expect([redactor.redact(text, 28), redactor.redact(text, 6)]).toEqual([' after', ' [TOKEN] after']);
  });
});
