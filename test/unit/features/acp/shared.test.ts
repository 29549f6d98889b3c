import { acp } from '../../../../src/features/acp/feature.js';
import { loadConfig } from '../../../../src/shared/config/config.js';

function loadHomeFiles(text: string): Promise<unknown> {
  const read = () => Promise.reject(new Error('there is no file'));
  const loaded = loadConfig({ MODEL_API_CLI_HOME_FILES: text }, read, undefined, [acp]);
  return loaded.then(({ featureValues }) => featureValues.MODEL_API_CLI_HOME_FILES);
}

describe('Files for the private HOME of an agent', () => {
  it.each<[string, readonly string[]]>([
    ['', []],
    ['.config/a b/auth.json, .netrc', ['.config/a b/auth.json', '.netrc']],
  ])('are paths separated by commas: %j', async (text, paths) => {
    expect(await loadHomeFiles(text)).toEqual(paths);
  });

  it.each(['/etc/passwd', '../other', '.config/../../x', '.config//x', './x'])(
    'must be below the HOME of the service: %s',
    async (text) => {
      await expect(loadHomeFiles(text)).rejects.toThrow('MODEL_API_CLI_HOME_FILES: must be paths below HOME');
    },
  );
});
