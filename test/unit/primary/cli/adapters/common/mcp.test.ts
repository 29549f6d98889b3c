import { callResult, serverInfo } from '../../../../../../src/primary/cli/adapters/common/mcp.js';

describe('A result as an MCP server gives it', () => {
  it('has texts and images in their places, and no empty text', () => {
    const images = [
      { mediaType: 'image/png', data: 'AAAA', at: 0 },
      { mediaType: 'image/gif', data: 'BBBB', at: 1 },
    ] as const;
    expect(callResult({ id: 'a', text: 'x', images, isError: true })).toEqual({
      content: [
        { type: 'image', data: 'AAAA', mimeType: 'image/png' },
        { type: 'text', text: 'x' },
        { type: 'image', data: 'BBBB', mimeType: 'image/gif' },
      ],
      isError: true,
    });
    expect(callResult({ id: 'a', text: '', isError: false })).toEqual({ content: [], isError: false });
  });
});

describe('The server as it presents itself', () => {
  it('speaks the version that the program speaks, and has tools alone', () => {
    expect(serverInfo('2025-06-18')).toMatchObject({ protocolVersion: '2025-06-18', capabilities: { tools: {} } });
  });
});
