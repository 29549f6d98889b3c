import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ClientProgram, clientPrograms, SettingsError } from '../../../../src/command/base/client-programs.js';
import { root } from '../../../support/documents/sources.js';

const documented = { url: 'http://127.0.0.1:5051', key: null, model: 'default' };
const target = { url: 'https://relay.example.org', key: 'key-0123', model: 'claude/opus' };
const page = readFileSync(join(root, 'docs', 'sdks.md'), 'utf8');

describe('The settings of a program without a file', () => {
  it.each([
    ['codex', clientPrograms.codex],
    ['opencode', clientPrograms.opencode],
    ['Continue', clientPrograms.continue],
  ])('of %s are those of docs/sdks.md', (name, program) => {
    const [, snippet = ''] = new RegExp(`^For ${name}\\b.*?^\`\`\`(?:\\w+)\\n(.*?)^\`\`\``, 'ms').exec(page) ?? [];
    const written = program.addService('', documented);
    if (name !== 'opencode') expect(written).toBe(snippet);
    else expect(JSON.parse(written)).toEqual(JSON.parse(snippet));
  });

  it('of Claude Code are the variables of docs/sdks.md', () => {
    const { env } = JSON.parse(clientPrograms['claude-code'].addService('', documented));
    expect(page).toContain(
      `${Object.entries(env)
        .map(([name, value]) => `${name}=${value}`)
        .join(' ')} claude\n`,
    );
  });

  it('of aider are those of its command line in docs/sdks.md', () => {
    const written = clientPrograms.aider.addService('', documented);
    expect(written).toBe('openai-api-base: http://127.0.0.1:5051/v1\nopenai-api-key: any\nmodel: openai/default\n');
    expect(page).toContain('OPENAI_API_BASE=http://127.0.0.1:5051/v1 OPENAI_API_KEY=any aider --model openai/default');
  });
});

describe.each(Object.entries(clientPrograms))('The settings of %s', (_, program) => {
  it('name the service, the model and, except for codex, the key', () => {
    const text = program.addService('', target);
    expect(text).toContain('https://relay.example.org');
    expect(text).toContain('claude/opus');
    expect(text.includes('key-0123')).toBe(program !== clientPrograms.codex);
  });

  it('replace those of another model, and stay the same after a second time', () => {
    const once = program.addService('', target);
    if (program === clientPrograms.continue) {
      expect(() => program.addService(once, target)).toThrow(SettingsError);
      return;
    }
    expect(program.addService(once, target)).toBe(once);
    const changed = program.addService(once, { ...target, model: 'other' });
    expect(changed).toContain('other');
    if (program !== clientPrograms.opencode) expect(changed).not.toContain('claude/opus'); // it can offer both
  });
});

describe('The removal of the service', () => {
  const { url } = target;
  const programs: Readonly<Record<keyof typeof clientPrograms, ClientProgram>> = clientPrograms;
  const { codex, opencode, continue: cn, aider, 'claude-code': claude } = programs;

  it.each(Object.entries(programs))('leaves what the user has changed since, in the settings of %s', (_, program) => {
    const others: Readonly<Record<string, string>> = {
      json: '{"theme": "dark"}',
      toml: '[tui]\na = 1\n',
      yml: 'dark-mode: true\n',
      yaml: 'name: mine\nmodels:\n- name: first\n  provider: ollama\n',
    };
    const kind = program.path({ home: '', config: '' }).split('.').at(-1) ?? '';
    const before = others[kind] ?? '';
    const added = program.addService(before, target);
    expect([program.usesService(added, url), program.usesService(before, url)]).toEqual([true, false]);
    expect(program.usesService(added, 'http://other')).toBe(false);
    const changed = kind === 'json' ? added.replace('dark', 'light') : `${added}# later\n`;
    const rest = program.removeService(changed, before, url);
    expect(rest).not.toContain('relay.example.org');
    if (kind === 'json') expect(JSON.parse(rest)).toEqual({ theme: 'light' });
    if (kind === 'yml' || kind === 'yaml') expect(rest).toBe(`${before}# later\n`);
  });

  it('keeps a model that the user has added to the new list of Continue, also below a comment or an empty line', () => {
    for (const own of ['  # mine\n  - name: gpt\n', '\n\n  - name: gpt\n']) {
      const rest = cn.removeService(`${cn.addService('', target)}${own}`, '', url);
      expect(rest).toMatch(/^models:\n\s*(# mine\n {2})?- name: gpt\n$/m);
    }
    const rest = cn.removeService(`${cn.addService('a: b\n', target)}# end\n`, 'a: b\n', url);
    expect(rest).toBe('a: b\n# end\n');
  });

  it('brings back the values that the service has replaced', () => {
    const old = { env: { ANTHROPIC_MODEL: 'old' }, b: 1 };
    const text = claude.addService(JSON.stringify(old), target).replace('"b": 1', '"b": 2');
    expect(JSON.parse(claude.removeService(text, JSON.stringify(old), url))).toEqual({ ...old, b: 2 });
    const chosen = opencode.addService('{"model": "a/b"}', target).replace('relay/claude/opus', 'c/d');
    expect(JSON.parse(opencode.removeService(chosen, '{"model": "a/b"}', url))).toEqual({ model: 'c/d' });
    const toml = 'model = "gpt-5"\n';
    expect(codex.removeService(`${codex.addService(toml, target)}[tui]\na = 1\n`, toml, url)).toBe(
      'model = "gpt-5"\n\n[tui]\na = 1\n',
    );
    const yml = 'model: gpt-5\n';
    expect(aider.removeService(`a: b\n${aider.addService(yml, target)}`, yml, url)).toBe('a: b\nmodel: gpt-5\n');
    expect(cn.removeService(cn.addService('name: mine\n', target), 'name: mine\n', url)).toBe('name: mine\n');
  });
});

describe('Existing settings', () => {
  it('in JSON keep everything else', () => {
    const before = { env: { EDITOR: 'vi', ANTHROPIC_MODEL: 'old' }, permissions: { allow: ['Read'] } };
    const after = JSON.parse(clientPrograms['claude-code'].addService(JSON.stringify(before), target));
    expect(after).toEqual({
      ...before,
      env: expect.objectContaining({ EDITOR: 'vi', ANTHROPIC_MODEL: 'claude/opus', ANTHROPIC_API_KEY: 'key-0123' }),
    });
  });

  it.each(['{ "a": 1, } // comment', '[]', '"text"', 'null'])(
    'in JSON are refused if they are no object: %s',
    (text) => {
      expect(() => clientPrograms.opencode.addService(text, target)).toThrow(SettingsError);
    },
  );

  it('in TOML keep everything else, and get the fields before the first table', () => {
    const before = [
      '# mine',
      'model = "gpt-5"',
      'approval_policy = "never"',
      'model_provider="openai"',
      '',
      '[model_providers.relay]',
      'base_url = "http://old"',
      '',
      '[model_providers.relay.http_headers]',
      'X-A = "1"',
      '',
      '[tui] # screen',
      'model = "stays"',
    ].join('\n');
    expect(clientPrograms.codex.addService(before, target)).toBe(`model = "claude/opus"
model_provider = "relay"
# mine
approval_policy = "never"

[model_providers.relay.http_headers]
X-A = "1"

[tui] # screen
model = "stays"

[model_providers.relay]
name = "relay"
base_url = "https://relay.example.org/v1"
wire_api = "responses"
stream_max_retries = 0
env_key = "RELAY_KEY"
`);
  });

  it('in TOML are refused if a string has several lines', () => {
    expect(() => clientPrograms.codex.addService('a = """\n[x]\n"""', target)).toThrow('strings of several lines');
  });

  it('of Continue get one more model, in the form of the others', () => {
    const before = 'name: mine\nmodels: # all\n- name: first\n  provider: ollama\nrules:\n  - Be brief\n';
    expect(clientPrograms.continue.addService(before, target)).toBe(`name: mine
models: # all
- name: claude/opus
  provider: openai
  model: claude/opus
  apiBase: https://relay.example.org/v1
  apiKey: key-0123
- name: first
  provider: ollama
rules:
  - Be brief
`);
    expect(clientPrograms.continue.addService('name: mine\n', target)).toMatch(/^name: mine\nmodels:\n {2}- name: /);
    expect(() => clientPrograms.continue.addService('models: []\n', target)).toThrow('on one line');
  });

  it('of aider keep everything else', () => {
    const before = 'dark-mode: true\nmodel: gpt-5\n# end';
    expect(clientPrograms.aider.addService(before, { ...target, key: 'a b: #"c' })).toBe(
      'dark-mode: true\n# end\nopenai-api-base: https://relay.example.org/v1\nopenai-api-key: "a b: #\\"c"\nmodel: openai/claude/opus\n',
    );
  });
});
