import { echoes, says, thinking } from '../../support/agents/messages-api-stub.js';
import type { SdkFace, SdkLab } from '../../support/clients/sdk-lab.js';
import type { Service } from '../../support/service/service.js';

interface Turn {
  readonly thoughts: readonly string[];
  /** Fields that prove or represent the thoughts, if the API has such fields. */
  readonly marks?: readonly string[];
  readonly text: string;
}

/** Tests that SDKs show the thoughts of the model, and may send them back. */
export function describeThoughts(lab: SdkLab, face: SdkFace): void {
  const isSigned = face.dialect === 'anthropic';
  const converse = async (service: Service, model: string, ...said: string[]) => {
    const { result, seen } = await lab.client.call<Turn[]>(service, face.name, 'thoughts', {
      model,
      said,
      thinks: true,
    });
    return { turns: result, sessions: seen.map((answer) => answer['x-session']) };
  };

  it('shows the thoughts of the demo model, and continues in one process when they are sent back', async () => {
    const said = ['My name is Ada.\nthink of Ada', 'What is my name?\nthink hard'];
    const { turns, sessions } = await converse(lab.demo, 'eliza', ...said);
    expect(turns).toMatchObject([{ thoughts: ['of Ada'] }, { thoughts: ['hard'] }]);
    expect(turns[1]?.text).toContain('Your name is Ada.');
    expect(sessions).toEqual(['replay', 'live']);
  });

  it('shows the thoughts of claude, and continues in one process when they are sent back', async () => {
    lab.api.behave = () => thinking(says('Hel', 'lo'));
    try {
      const { turns, sessions } = await converse(lab.claude, 'claude-sonnet-5', 'One', 'Two');
      expect(turns.map(({ text }) => text)).toEqual(['Hello', 'Hello']);
      for (const { thoughts, marks } of turns) {
        expect(thoughts.filter((text) => text !== '')).toEqual(['Let me think.']);
        if (isSigned) expect(marks).toEqual(['proof', 'sealed']);
      }
      expect(sessions).toEqual(['replay', 'live']);
    } finally {
      lab.api.behave = echoes;
    }
  });
}
