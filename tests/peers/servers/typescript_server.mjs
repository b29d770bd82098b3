// A server on the TypeScript SDK: `typescript_server.mjs stdio|http legacy|modern`, over HTTP on the loopback port in PORT.
//
// It speaks one era only. What its tools do is the same in both, and the same as in `python_server.py`: one test program
// visits all of them and must see no difference.

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';

import { NodeStreamableHTTPServerTransport, toNodeHandler } from '@modelcontextprotocol/node';
import {
    createMcpHandler,
    createRequestStateCodec,
    fromJsonSchema,
    inputRequired,
    McpServer
} from '@modelcontextprotocol/server';
import { serveStdio, StdioServerTransport } from '@modelcontextprotocol/server/stdio';

const [transport, era] = process.argv.slice(2);
const NOTE = 'note://today';

// What all calls share. A modern server over HTTP makes a new `McpServer` for each request.
const shared = { cancelled: 0, touched: false };
const states = createRequestStateCodec({ key: randomUUID() + randomUUID() });
/** Tells who listens, where that is not the business of one connection. */
let notifier;

const text = text => ({ content: [{ type: 'text', text }] });
const object = (properties = {}, required = Object.keys(properties)) =>
    fromJsonSchema({ type: 'object', properties, required });
const form = (message, properties, required = Object.keys(properties)) =>
    inputRequired.elicit({ message, requestedSchema: { type: 'object', properties, required } });
const pause = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds));

function progress(context, done, total) {
    const progressToken = context.mcpReq._meta?.progressToken;
    if (progressToken === undefined) return Promise.resolve();
    const params = { progressToken, progress: done, total, message: `step ${done}` };
    return context.mcpReq.notify({ method: 'notifications/progress', params });
}

function makeServer() {
    const server = new McpServer(
        { name: 'same-peer', version: '1' },
        {
            capabilities: {
                completions: {},
                logging: {},
                prompts: {},
                resources: { listChanged: true, subscribe: true },
                tools: { listChanged: true }
            },
            requestState: { verify: states.verify }
        }
    );
    const tool = (name, description, inputSchema, run) => server.registerTool(name, { description, inputSchema }, run);
    const extra = () => tool('extra', 'Is there once the server was touched.', object(), async () => text('extra'));

    server.registerTool(
        'add',
        {
            description: 'Adds two numbers.',
            inputSchema: object({ a: { type: 'integer' }, b: { type: 'integer' } }),
            outputSchema: object({ sum: { type: 'integer' } })
        },
        async ({ a, b }) => ({ ...text(`${a + b}`), structuredContent: { sum: a + b } })
    );
    tool('fail', 'Fails.', object(), async () => ({ ...text('it failed'), isError: true }));
    tool('count', 'Counts, and reports each step.', object({ steps: { type: 'integer' } }), async ({ steps }, context) => {
        for (let step = 1; step <= steps; step += 1) {
            await context.mcpReq.log('debug', { step }, 'counter');
            await context.mcpReq.log('warning', { step }, 'counter');
            await progress(context, step, steps);
        }
        return text(`counted to ${steps}`);
    });
    tool('interrupted', 'Loses its stream half way, where streams can be continued.', object(), async (_, context) => {
        await progress(context, 1, 2);
        context.http?.closeSSE?.();
        await pause(100);
        await progress(context, 2, 2);
        return text('went on');
    });
    tool('ask_name', 'Asks for a name.', object(), async (_, context) => {
        const answer = context.mcpReq.inputResponses?.name;
        if (answer === undefined) {
            const name = { type: 'string', title: 'Name', minLength: 1 };
            const times = { type: 'integer', default: 2 };
            return inputRequired({ inputRequests: { name: form('What is your name?', { name, times }, ['name']) } });
        }
        return text(answer.action === 'accept' ? `accept ${answer.content.name} ${answer.content.times}` : answer.action);
    });
    tool('order', 'Asks twice, and keeps the first answer in the state.', object(), async (_, context) => {
        const size = context.mcpReq.inputResponses?.size;
        const dish = context.mcpReq.inputResponses?.dish;
        if (size !== undefined) {
            return text(`${size.content.size} ${context.mcpReq.requestState().dish}`);
        }
        if (dish !== undefined) {
            const requestState = await states.mint({ dish: dish.content.dish });
            const choice = { type: 'string', enum: ['small', 'large'] };
            return inputRequired({ inputRequests: { size: form('Which size?', { size: choice }) }, requestState });
        }
        return inputRequired({ inputRequests: { dish: form('Which dish?', { dish: { type: 'string' } }) } });
    });
    tool('ask_url', 'Asks to open a page.', object(), async (_, context) => {
        const answer = context.mcpReq.inputResponses?.page;
        if (answer !== undefined) return text(answer.action);
        if (era === 'legacy') {
            const page = { mode: 'url', message: 'Please sign in', url: 'https://example.com/sign-in', elicitationId: randomUUID() };
            return text((await context.mcpReq.elicitInput(page)).action);
        }
        const page = inputRequired.elicitUrl({ message: 'Please sign in', url: 'https://example.com/sign-in' });
        return inputRequired({ inputRequests: { page } });
    });
    tool('ask_model', 'Asks the model of the client.', object(), async (_, context) => {
        const answer = context.mcpReq.inputResponses?.verse;
        if (answer !== undefined) return text(`${answer.model}: ${answer.content.text}`);
        const messages = [{ role: 'user', content: { type: 'text', text: 'Write a verse.' } }];
        return inputRequired({ inputRequests: { verse: inputRequired.createMessage({ messages, maxTokens: 50 }) } });
    });
    tool('ask_roots', 'Asks for the roots of the client.', object(), async (_, context) => {
        const answer = context.mcpReq.inputResponses?.roots;
        if (answer !== undefined) return text(answer.roots.map(root => root.uri).join(' '));
        return inputRequired({ inputRequests: { roots: inputRequired.listRoots() } });
    });
    tool('touch', 'Changes the note, and the list of tools.', object(), async () => {
        const first = !shared.touched;
        shared.touched = true;
        if (notifier) {
            notifier.resourceUpdated(NOTE);
            notifier.toolsChanged();
        } else {
            await server.server.sendResourceUpdated({ uri: NOTE });
            // Registering tells of the change.
            if (first) extra();
            else server.sendToolListChanged();
        }
        return text('touched');
    });
    tool('wait', 'Waits until it is cancelled.', object(), async (_, context) => {
        await new Promise(resolve => context.mcpReq.signal.addEventListener('abort', resolve));
        shared.cancelled += 1;
        return text('cancelled');
    });
    tool('cancelled', 'Waits until a call was cancelled, and says how many were.', object(), async () => {
        for (let round = 0; round < 100 && shared.cancelled === 0; round += 1) await pause(50);
        return text(`${shared.cancelled}`);
    });
    if (shared.touched) extra();

    server.registerResource('today', NOTE, { mimeType: 'text/plain' }, async uri => ({
        contents: [{ uri: uri.href, mimeType: 'text/plain', text: shared.touched ? 'touched' : 'untouched' }]
    }));
    server.registerPrompt('greet', { argsSchema: object({ name: { type: 'string' } }) }, ({ name }) => ({
        messages: [{ role: 'user', content: { type: 'text', text: `Greet ${name}.` } }]
    }));
    server.server.setRequestHandler('completion/complete', async ({ params }) => {
        const values = ['Ada', 'Alan', 'Grace'].filter(name => name.startsWith(params.argument.value));
        return { completion: { values, total: values.length, hasMore: false } };
    });
    if (era === 'legacy') {
        // There is one connection to this server, and one resource.
        server.server.setRequestHandler('resources/subscribe', async () => ({}));
        server.server.setRequestHandler('resources/unsubscribe', async () => ({}));
    }
    return server;
}

/** Keeps all events in memory, for streams that are continued. */
class Events {
    #events = [];

    async storeEvent(stream, message) {
        this.#events.push({ stream, message });
        return `e${this.#events.length}`;
    }

    async getStreamIdForEventId(id) {
        return this.#events[Number(id.slice(1)) - 1]?.stream;
    }

    async replayEventsAfter(last, { send }) {
        const from = Number(last.slice(1));
        const stream = this.#events[from - 1]?.stream;
        for (const [index, event] of this.#events.entries()) {
            const isMessage = Object.keys(event.message).length > 0;
            if (index >= from && event.stream === stream && isMessage) await send(`e${index + 1}`, event.message);
        }
        return stream;
    }
}

const sessions = new Map();

async function legacy(request, response) {
    if (request.headers['last-event-id'] !== undefined) console.error(`continued after an event`);
    const known = sessions.get(request.headers['mcp-session-id']);
    if (known) return known.handleRequest(request, response);
    const opened = new NodeStreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        eventStore: new Events(),
        retryInterval: 20,
        onsessioninitialized: id => sessions.set(id, opened)
    });
    await makeServer().connect(opened);
    return opened.handleRequest(request, response);
}

function listen(handle) {
    const serve = (request, response) => {
        if (new URL(request.url, 'http://localhost').pathname !== '/mcp') return response.writeHead(404).end();
        return handle(request, response);
    };
    createServer(serve).listen(Number(process.env.PORT), '127.0.0.1');
}

if (transport === 'stdio' && era === 'legacy') {
    await makeServer().connect(new StdioServerTransport());
} else if (transport === 'stdio') {
    serveStdio(makeServer, { legacy: 'reject' });
} else if (era === 'legacy') {
    listen(legacy);
} else {
    const handler = createMcpHandler(makeServer, { legacy: 'reject' });
    notifier = handler.notify;
    listen(toNodeHandler(handler));
}
