import { handPrograms } from '../../../../src/command/base/hand-programs.js';

const target = { url: 'http://[::1]:5051', key: "it's", model: 'opus[1m]' };

/** Returns the steps for a program as one text. */
function stepsOf(name: string, key: string | null = target.key): string {
  return (
    handPrograms
      .get(name)?.({ ...target, key })
      .join('\n') ?? ''
  );
}

describe('The steps by hand', () => {
  it('quote each word for a shell', () => {
    const key = "'it'\\''s'";
    const api = "'http://[::1]:5051/v1'";
    expect(stepsOf('qwen')).toContain(`OPENAI_BASE_URL=${api} OPENAI_API_KEY=${key} OPENAI_MODEL='opus[1m]' qwen`);
    expect(stepsOf('cline')).toContain(`--baseurl ${api} --apikey ${key} --modelid 'opus[1m]'`);
    expect(stepsOf('gemini-cli')).toContain(`relay 'http://[::1]:5051/mcp' --header 'Authorization: Bearer it'\\''s'`);
  });

  it('quote each value for YAML and TOML', () => {
    expect(stepsOf('aider', 'a b: #"c')).toContain('openai-api-key: "a b: #\\"c"\nmodel: "openai/opus[1m]"\n');
    expect(stepsOf('continue')).toContain('  - name: "opus[1m]"\n');
    expect(stepsOf('codex')).toContain('model = "opus[1m]"\n');
  });

  it('of codex name the variable of the key, if there is one', () => {
    expect([stepsOf('codex'), stepsOf('codex', null)].map((text) => text.includes('RELAY_KEY'))).toEqual([true, false]);
    expect(stepsOf('codex')).not.toContain("it's");
  });

  it('warn if the key is an argument', () => {
    const warning = 'other users of this machine can read your API key';
    for (const name of ['cline', 'gemini-cli'])
      expect([stepsOf(name).includes(warning), stepsOf(name, null).includes(warning)]).toEqual([true, false]);
    for (const name of ['qwen', 'aider']) expect(stepsOf(name)).not.toContain(warning);
  });
});
