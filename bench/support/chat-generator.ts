import { Agent, request } from 'node:http';
import { Lanes } from './lanes.js';
import { perform, prompt, type Task } from './task.js';

/**
 * Program that takes turns of conversations. Arguments: the relay's port, and the number of turns of each conversation.
 */

const port = Number(process.argv[2]);
const maxTurns = Number(process.argv[3]);

interface Conversation {
  id: string | null;
  turns: number;
}

const conversations = new Lanes<Conversation>(() => ({ id: null, turns: 0 }));

process.on('message', (task: Task) => {
  const agent = new Agent({ keepAlive: true });
  void perform(task, () => conversations.with((conversation) => takeTurn(conversation, agent))).then((result) => {
    agent.destroy(); // the server would close idle sockets before the next task
    process.send?.(result);
  });
});

async function takeTurn(conversation: Conversation, agent: Agent): Promise<void> {
  const { id } = conversation;
  const text = await post(JSON.stringify({ message: prompt, ...(id !== null && { conversation_id: id }) }), agent);
  const answer = JSON.parse(text) as { success?: boolean; conversation_id: string };
  if (answer.success !== true) throw new Error(`the relay answered ${text.slice(0, 500)}`);
  conversation.turns++;
  const isOver = conversation.turns >= maxTurns;
  Object.assign(conversation, isOver ? { id: null, turns: 0 } : { id: answer.conversation_id });
}

function post(body: string, agent: Agent): Promise<string> {
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
  return new Promise((resolve, reject) => {
    const asked = request({ host: '127.0.0.1', port, path: '/chat', method: 'POST', agent, headers }, (answer) => {
      let text = '';
      answer.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      answer.once('end', () => resolve(text));
    });
    asked.once('error', reject).end(body);
  });
}
