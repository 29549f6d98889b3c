import { anthropicList, anthropicModel } from '../../../../src/features/anthropic/models.js';
import type { ModelEntry } from '../../../../src/shared/api/models.js';

const context = { firstStartMs: Date.UTC(2026, 0, 2), modelAbilities: ['batch'] };
const model: ModelEntry = { id: 'claude-opus-4-5-20251101', name: 'Opus', default: true };

describe("A model in the form of Anthropic's API", () => {
  it('has its sizes, its features and the date in its name', () => {
    const capabilities = {
      images: true,
      pdf: true,
      citations: true,
      effort: true,
      schema: true,
      thinking: true,
      tools: 'native',
    } as const;
    const sizes = { max_input_tokens: 200_000, max_tokens: 64_000 };
    expect(anthropicModel({ ...model, ...sizes, capabilities, description: 'Slow' }, context)).toMatchObject({
      ...{ id: model.id, display_name: 'Opus', description: 'Slow', created_at: '2025-11-01T00:00:00.000Z', ...sizes },
      capabilities: {
        batch: { supported: true },
        image_input: { supported: true },
        pdf_input: { supported: true },
        citations: { supported: true },
        effort: { supported: true, max: { supported: true } },
        structured_outputs: { supported: true },
        thinking: { supported: true, types: { adaptive: { supported: true }, disabled: { supported: true } } },
      },
    });
  });

  it('has its own types of thinking and efforts, if they are known', () => {
    const own = { thinking_types: ['adaptive', 'between_tools'], efforts: ['low' as const, 'max' as const] };
    const capabilities = { images: true, effort: true, thinking: true, ...own };
    const [yes, no] = [{ supported: true }, { supported: false }];
    expect(anthropicModel({ ...model, capabilities }, context).capabilities).toMatchObject({
      effort: { supported: true, low: yes, medium: no, high: no, xhigh: no, max: yes },
      thinking: { supported: true, types: { adaptive: yes, between_tools: yes, disabled: no, enabled: no } },
    });
  });

  it.each([
    ['claude-opus-4-5-20251101', 'claude-opus-4-5-20251101', '2025-11-01T00:00:00.000Z'],
    ['us.anthropic.claude-next', 'us.anthropic.claude-next', '2026-01-02T00:00:00.000Z'],
    ['codex/gpt-4o-2024-08-06', 'anthropic/codex/gpt-4o-2024-08-06', '2024-08-06T00:00:00.000Z'],
    ['opus', 'anthropic/opus', '2026-01-02T00:00:00.000Z'],
    ['x-20259999', 'anthropic/x-20259999', '2026-01-02T00:00:00.000Z'],
  ])('has an id that Claude Code shows: %s', (id, shown, created) => {
    const alias = id === shown ? undefined : id;
    const [listed] = (anthropicList([{ ...model, id }], context) as { data: object[] }).data;
    expect(listed).toMatchObject({ id: shown, created_at: created });
    expect(listed).toHaveProperty('capabilities', null);
    expect((listed as { alias_of?: string }).alias_of).toBe(alias);
  });
});
