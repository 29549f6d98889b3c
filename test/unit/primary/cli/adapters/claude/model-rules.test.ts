import { ClaudeModels, listedModels } from '../../../../../../src/primary/cli/adapters/claude/model-rules.js';
import { allEfforts } from '../../../../../../src/shared/job.js';

const models = new ClaudeModels();

describe('The rules of a model', () => {
  it.each([
    ['claude-opus-5-5', ['adaptive'], false, false],
    ['us.anthropic.claude-opus-5-5-20260901-v1:0', ['adaptive'], false, false],
    ['claude-fable-5', ['adaptive'], false, false],
    ['claude-fable-5-2[1m]', ['adaptive'], false, false],
    ['claude-sonnet-5-5-20260815', ['adaptive', 'between_tools'], false, false],
    ['claude-haiku-5-5', ['adaptive'], true, false],
    ['claude-opus-5-20260301', ['adaptive', 'disabled'], true, false],
    ['claude-sonnet-5', ['adaptive', 'disabled'], true, false],
    ['claude-opus-4-8[1m]', ['adaptive', 'disabled'], true, false],
    ['claude-opus-4-6', ['adaptive', 'disabled'], true, true],
    ['claude-sonnet-4-5-20250929', ['enabled', 'disabled'], true, true],
    ['claude-sonnet-4-20250514', ['enabled', 'disabled'], true, true],
    ['claude-3-7-sonnet-20250219', ['enabled', 'disabled'], true, true],
    ['claude-3-5-haiku-20241022', ['disabled'], true, true],
  ])('follow from its name: %s', (name, thinking, acceptsDemand, acceptsSampling) => {
    expect(models.rulesOf(name)).toMatchObject({ thinking, acceptsDemand, acceptsSampling });
  });

  it.each([
    ['claude-opus-5-5', allEfforts],
    ['claude-haiku-5-5', allEfforts],
    ['claude-opus-4-7', allEfforts],
    ['claude-sonnet-4-6', ['low', 'medium', 'high', 'max']],
    ['claude-opus-4-5', ['low', 'medium', 'high']],
    ['claude-haiku-4-5-20251001', []],
    ['claude-3-7-sonnet-20250219', []],
    ['my-gateway/model', undefined],
  ])('contain the efforts that claude sends, if the program does not list them: %s', (name, efforts) => {
    expect(models.rulesOf(name).efforts).toEqual(efforts);
  });

  it.each(['claude-opus-6', 'claude-saga-7-1', 'claude-sonnet-5-7'])(
    'are the strictest for a newer model: %s',
    (name) => {
      expect(models.rulesOf(name)).toMatchObject({
        thinking: ['adaptive'],
        acceptsDemand: false,
        acceptsSampling: false,
      });
    },
  );

  it.each([null, 'opus', 'my-gateway/model'])('are left to the API if the model is unknown: %s', (name) => {
    expect(models.rulesOf(name)).toMatchObject({ thinking: null, acceptsDemand: true, acceptsSampling: true });
  });
});

describe('The model behind a short name', () => {
  const lines = [
    { type: 'system' },
    {
      type: 'control_response',
      response: {
        response: {
          models: [
            { value: 'default', resolvedModel: 'claude-opus-4-5', displayName: 'Default' },
            {
              ...{ value: 'sonnet', resolvedModel: 'claude-sonnet-5-5[1m]', displayName: 'Sonnet' },
              ...{ supportsEffort: true, supportedEffortLevels: ['low', 'high', 'of tomorrow'] },
            },
          ],
        },
      },
    },
  ];

  it('is the one that the CLI lists, with its efforts', () => {
    const learnt = new ClaudeModels();
    learnt.noteList(listedModels(lines) ?? []);
    expect(learnt.rulesOf(null)).toMatchObject({ thinking: ['enabled', 'disabled'], efforts: [] }); // not those by its name
    expect(learnt.rulesOf('sonnet')).toMatchObject({ acceptsDemand: false, efforts: ['low', 'high'] });
    expect(learnt.rulesOf('claude-sonnet-5-5').efforts).toEqual(['low', 'high']);
    const without = { resolvedModel: 'claude-opus-5', displayName: 'Opus', supportsEffort: true };
    learnt.noteList([{ value: 'opus', ...without }]);
    expect(learnt.rulesOf('opus').efforts).toEqual(allEfforts);
  });

  it('is the one that has answered, but a full name always stands for itself', () => {
    const learnt = new ClaudeModels();
    learnt.noteList(listedModels(lines) ?? []);
    learnt.noteAnswer(null, 'claude-opus-5-5');
    learnt.noteAnswer('claude-opus-4-5', 'claude-opus-5-5');
    expect(learnt.rulesOf(null).acceptsDemand).toBe(false);
    expect(learnt.rulesOf('claude-opus-4-5').acceptsDemand).toBe(true);
  });
});
