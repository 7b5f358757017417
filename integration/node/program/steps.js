"use strict";

// What the programs share: steps that are printed as integration/lib/clients.py wants them, and waiting.

const assert = require("assert");
const readline = require("readline");

const answers = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();

/** Runs one step and prints what came of it; the next one runs after a failed one as well. */
async function step(name, run) {
    const began = Date.now();
    let timer;
    const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error("not done within 90 s")), 90000);
    });
    try {
        await Promise.race([run(), late]);
        console.log(`ok ${name} (${(Date.now() - began) / 1000} s)`);
    } catch (error) {
        const where = (error.stack || "").split("\n").find((line) => line.includes("/program/")) || "";
        console.log(`FAILED ${name}: ${String(error.message || error).replace(/\n/g, " ")} ${where.trim()}`);
    } finally {
        clearTimeout(timer);
    }
}

/** Has the leader killed; fulfilled when another one leads and the killed one is back. */
async function failOver() {
    console.log("fail over");
    const { value } = await answers.next();
    assert.strictEqual(value, "done");
}

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Waits for a condition, which may be asynchronous. */
async function eventually(what, condition, seconds = 60) {
    for (const deadline = Date.now() + seconds * 1000; ; await pause(20)) {
        if (await condition()) {
            return;
        }
        assert(Date.now() < deadline, `not within ${seconds} s: ${what}`);
    }
}

/** Repeats an operation as long as `lost(error)` says that its connection was lost. */
async function insist(operation, lost) {
    for (const deadline = Date.now() + 60000; ; await pause(50)) {
        try {
            return await operation();
        } catch (error) {
            if (!lost(error) || Date.now() > deadline) {
                throw error;
            }
        }
    }
}

/** Awaits that `operation` is refused, with what `reason(error)` tells equal to the expected. */
async function refused(operation, expected, reason) {
    let seen;
    try {
        await operation;
    } catch (error) {
        seen = reason(error);
    }
    assert.strictEqual(seen, expected);
}

/** A watch: `callback` is for the client, `next()` awaits what it is called with. */
function watch() {
    const seen = [];
    return {
        seen,
        callback: (...event) => seen.push(event),
        async next() {
            await eventually("an event", () => seen.length > 0, 30);
            return seen.shift();
        },
    };
}

/** A deadline for the whole program: a client that never answers must not keep the harness waiting. */
function main(play) {
    play().then(
        () => {
            console.log("end");
            process.exit(0);
        },
        (error) => {
            console.log(`FAILED: ${error.stack}`);
            process.exit(1);
        },
    );
}

module.exports = { assert, eventually, failOver, insist, main, pause, refused, step, watch };
