import { warningsOf } from '../../../src/primary/host/warnings.js';
import { loadConfig } from '../../../src/shared/config/config.js';

describe('the warnings at the start', () => {
  const tools = { setpriv: '/usr/bin/setpriv', hasPs: true };

  async function warningsFor(env: Record<string, string>, adapter: string) {
    return warningsOf(await loadConfig(env, async () => ''), tools, adapter);
  }

  it('name a program that is taken for claude, unless it is called so or that was said', async () => {
    const command = { MODEL_API_CLI_COMMAND: '/usr/bin/ollama run llama3.2' };
    expect(await warningsFor(command, 'claude')).toEqual([expect.stringMatching(/^ollama .*MODEL_API_CLI=command/)]);
    expect(await warningsFor({ ...command, MODEL_API_CLI: 'claude' }, 'claude')).toEqual([]);
    expect(await warningsFor({ MODEL_API_CLI_COMMAND: '/opt/claude-2/bin/claude' }, 'claude')).toEqual([]);
  });

  it('tell that the demo model answers, unless that was asked for', async () => {
    expect(await warningsFor({}, 'demo')).toEqual([expect.stringContaining('the demo model answers')]);
    expect(await warningsFor({ MODEL_API_CLI: 'demo' }, 'demo')).toEqual([]);
  });
});
