// What the search finds: each entry is scored, by how much of what is asked it says and how rare that is.
"use strict";
window.readerkitIndex = function (data) {
  const LIMIT = 40;
  const IS_NAME = { name: 1, field: 1, file: 1, code: 1 };
  // How much a kind counts: what people wrote, then names, then words in the midst of code.
  const KINDS = { concept: 1.5, symptom: 1.5, citation: 1.4, note: 1.4, pitfall: 1.4, chapter: 1.1, mechanism: 1.2, page: 1.3, estimate: 1.6,
    beside: 1.2, record: 0.6, tour: 1.2, question: 0.7, quiz: 0.8, lab: 0.9, reference: 0.8, name: 1, field: 1, file: 1.15, code: 0.35 };
  const EXACT = 1, SAME = 0.7, BEGUN = 0.7, NEAR = 0.6, WITHIN = 0.3, IDEA = 2;
  const BRIEF = 300; // stems of a text of which each was meant
  const stop = new Set(data.stop.split(" "));
  const endings = data.endings.split(" ").sort(function (a, b) { return b.length - a.length; });
  const entries = [], stems = new Map(), stemOf = new Map();

  // --- words ---
  // Without accents: who types "perdida" finds "pérdida".
  function plain(text) { return text.toLowerCase().normalize("NFD").replace(/[\u0300-\u036f]/g, ""); }
  // The words of a text, those inside a name too: "RowParallelLinear" is row, parallel, linear.
  // Two parts of which one is short are a word of their own: "ZeRO", "DTensor".
  function words(text) {
    const found = [];
    for (const run of text.match(/[\p{L}\p{M}\p{N}]+/gu) || []) {
      const parts = run.replace(/([a-z0-9])([A-Z])/g, "$1 $2").replace(/([A-Z])([A-Z][a-z])/g, "$1 $2").split(" ");
      const isOne = parts.length === 2 && parts.some(function (part) { return part.length < 3; });
      found.push(...(isOne ? [run] : parts).map(plain));
    }
    return found;
  }
  function stem(word) {
    let cut = stemOf.get(word);
    if (cut !== undefined) return cut;
    cut = word;
    const end = /\d|ss$/.test(word) ? undefined
      : endings.find(function (each) { return word.length - each.length > 2 && word.endsWith(each); });
    if (end) cut = word.slice(0, -end.length).replace(/([^aeiouls])\1$/, "$1"); // "clipping" is "clip"
    stemOf.set(word, cut);
    return cut;
  }
  // Letters only, to compare names however their words are joined.
  function letters(text) { return plain(text).replace(/[^\p{L}\p{N}]+/gu, ""); }
  // Texts of which those with some letters, or of a length, are found at once: there are
  // tens of thousands, and to ask each of them takes ten times as long.
  function heap(texts) {
    const whole = "\n" + texts.join("\n"), starts = [], ofLength = new Map();
    let start = 1;
    texts.forEach(function (text, number) {
      starts.push(start);
      start += text.length + 1;
      const same = ofLength.get(text.length);
      if (same) same.push(number);
      else ofLength.set(text.length, [number]);
    });
    starts.push(start);
    function having(part) {
      const found = [];
      let number = 0;
      if (part) for (let at = whole.indexOf(part); at >= 0; at = whole.indexOf(part, starts[number] - 1)) {
        while (starts[number + 1] <= at + 1) number += 1;
        found.push(number);
        number += 1;
      }
      return found;
    }
    return {
      having: having,
      begun: function (part) { return having("\n" + part); },
      // Those that are as long, a letter longer or shorter.
      about: function (length) { return [-1, 0, 1].flatMap(function (more) { return ofLength.get(length + more) || []; }); },
    };
  }

  // --- the index ---
  function say(number, key, weight) {
    let said = stems.get(key);
    if (!said) stems.set(key, said = { who: [], weight: [] });
    const last = said.who.length - 1;
    if (said.who[last] === number) said.weight[last] = Math.max(said.weight[last], weight);
    else { said.who.push(number); said.weight.push(weight); }
  }
  function add(kind, name, where, page, spanish) {
    const number = entries.length, factor = KINDS[kind];
    const short = kind === "file" ? name.replace(/\.\w+$/, "") : name;
    const titles = [short, spanish].filter(Boolean).map(asked);
    entries.push({ kind: kind, name: name, spanish: spanish, where: where, page: page, letters: letters(name),
      mark: IS_NAME[kind] ? "" : letters(page.split("#")[1] || ""),
      titles: IS_NAME[kind] ? [] : titles.map(function (title) { return title.map(stem); }) });
    titles.forEach(function (title) {
      const weight = factor * (1.3 + 1.2 / Math.max(1, title.length));
      title.forEach(function (word) { say(number, stem(word), weight); });
    });
  }
  // --- as the builder packed it (search_packing.py) ---
  // Nothing stands between numbers: a digit of the first 76 ends one, any other goes on.
  const ENDING = 76, ONWARD = 15;
  function numbers(text) {
    const found = [];
    let high = 0;
    for (let at = 0; at < text.length; at += 1) {
      const code = text.charCodeAt(at), digit = code - 35 - Number(code > 92);
      if (digit < ENDING) {
        found.push(high * ENDING + digit);
        high = 0;
      } else high = high * ONWARD + digit - ENDING + 1;
    }
    return found;
  }
  function column(text) { return text.split("\n"); }
  function unpackFiles(packed) {
    const lines = numbers(packed.lines), paths = column(packed.paths), pages = column(packed.pages);
    const of = packed.upstreams.flatMap(function (each) { return Array(each[1]).fill(each[0]); });
    let before = [];
    return lines.map(function (count, at) {
      before = [...before.slice(0, numbers(paths[at][0])[0]), ...paths[at].slice(1).split("/")];
      const path = before.join("/");
      return { path: path, lines: count, page: pages[at] || "read/" + of[at] + "/" + path + ".html" };
    });
  }
  function unpackNames(names, lines, read) {
    const steps = numbers(lines);
    let next = 0;
    column(names).forEach(function (inFile, at) {
      let line = 0, before = [];
      if (inFile) inFile.split(" ").forEach(function (item) {
        const [, sign, up, rest] = /^(=?)(\.*)(.*)$/.exec(item);
        line += steps[next++];
        before = [...before.slice(0, up.length), ...rest.split(".")];
        read(files[at], before.join("."), line, sign);
      });
    });
  }
  const files = unpackFiles(data.files);
  const written = data.texts.map(column), noted = new Set();
  if (written.length) written[0].forEach(function (kind, at) {
    let [title, where, page, spanish] = written.slice(1).map(function (texts) { return texts[at]; });
    const inFile = /^=(\d+)(.*)$/.exec(page);
    if (inFile) {
      const file = files[inFile[1]];
      where = file.path + where;
      page = file.page + inFile[2];
    }
    noted.add(page.split("#")[0]);
    add(kind, title, where, page, spanish);
  });
  // Each stem with the endings of its words, who says one of them, and how many entries lie between.
  const sayers = data.said.split(" ").map(function (packed) {
    let number = 0;
    return numbers(packed).map(function (step) { return number += step; });
  });
  // A long text says much by chance: that it says a word, or all of them, tells less.
  const said = entries.map(function () { return 0; });
  sayers.forEach(function (who) { who.forEach(function (number) { said[number] += 1; }); });
  const share = said.map(function (count) { return Math.min(1, Math.pow(BRIEF / count, 0.25)); });
  data.words.split(" ").forEach(function (group, at) {
    const [key, ...written] = group.split(",");
    for (const end of written.length ? written : [""]) stemOf.set(key + end, key);
    sayers[at].forEach(function (number) { say(number, key, KINDS[entries[number].kind]); });
  });
  const firstFile = entries.length;
  files.forEach(function (file) { add("file", file.path.split("/").pop(), file.path, file.page); });
  let vocabulary;
  const meant = new Map(); // of each word typed: the next letter is of the last alone
  // One idea in several phrases: as they are typed, and as an entry says them. One of which
  // little remains without its small words is known to the index by the first of them.
  const same = data.same.map(function (group) {
    const typed = group.split(" = ").map(function (phrase) { return words(phrase); });
    const said = typed.map(function (phrase) { return told(phrase).map(stem); });
    return { typed: typed.map(function (phrase) { return phrase.map(stem); }),
      said: said.filter(function (keys, at) { return typed[at].length === 1 || new Set(keys).size > 1; }) };
  });
  let scores, covered, all, known, called, marks, hasNames = false; // all: a word is as rare before the names come
  function size() {
    vocabulary = Array.from(stemOf.keys());
    known = heap(vocabulary);
    called = heap(entries.map(function (entry) { return entry.letters; }));
    marks = heap(entries.map(function (entry) { return entry.mark; }));
    meant.clear();
    all = Math.max(entries.length, data.names);
    scores = new Float64Array(entries.length);
    covered = new Float64Array(entries.length);
  }
  size();
  // The other half: the names in the files, and words in the midst of their code.
  window.readerkitNames = function (packed) {
    hasNames = true;
    unpackNames(packed.names, packed.at, function (file, name, line, isField) {
      add(isField ? "field" : "name", name, file.path + ":" + line, file.page + "#L" + line);
    });
    unpackNames(packed.said, packed.said_at, function (file, name, line) {
      add("code", name, file.path + ":" + line, file.page + "#L" + line);
    });
    size();
    document.dispatchEvent(new Event("readerkit:index"));
  };

  // --- what is asked ---
  function asked(text) { return told(words(text)); }
  function told(all) {
    const some = all.filter(function (word) { return !stop.has(word); });
    return some.length ? some : all;
  }
  // Whether one letter more, less, other, or two swapped, make one word of the other.
  function isNear(one, other) {
    if (Math.abs(one.length - other.length) > 1) return false;
    let from = 0, back = 0;
    const most = Math.min(one.length, other.length);
    while (from < most && one[from] === other[from]) from += 1;
    while (back < most - from && one[one.length - 1 - back] === other[other.length - 1 - back]) back += 1;
    const left = one.length - from - back, right = other.length - from - back;
    return left < 2 && right < 2
      || left === 2 && right === 2 && one[from] === other[from + 1] && one[from + 1] === other[from];
  }
  // What a word may mean, each a list of stems that an entry says, with how sure that is.
  function meanings(word) {
    if (!meant.has(word)) meant.set(word, meaningsOf(word));
    return meant.get(word);
  }
  function meaningsOf(word) {
    const found = [[[stem(word)], EXACT]];
    const parts = word.match(/\d+|\D+/g);
    if (parts.length > 1 && !stems.has(stem(word))) found.push([parts.map(stem), SAME]);
    const isKnown = stems.has(stem(word));
    const seen = new Set([stem(word)]), isLong = !isKnown && word.length > 3;
    const alike = isLong ? known.having(word).concat(known.about(word.length)) : word.length > 2 ? known.begun(word) : [];
    for (const number of new Set(alike.sort(function (one, other) { return one - other; }))) {
      const other = vocabulary[number];
      const key = stemOf.get(other);
      if (seen.has(key)) continue;
      const sure = word.length > 2 && other.startsWith(word) ? BEGUN
        : isLong && isNear(word, other) ? NEAR
          : isLong && other.includes(word) ? WITHIN : 0;
      if (!sure || !stems.has(key)) continue;
      seen.add(key);
      found.push([[key], sure]);
    }
    return found;
  }
  // The stem of a word, or of what it was to be: the one that most entries say.
  function meantKey(word) {
    if (stems.has(stem(word))) return stem(word);
    const near = meanings(word).filter(function (each) { return each[1] === NEAR; });
    return near.map(function (each) { return each[0][0]; }).reduce(function (best, key) {
      return stems.has(best) && stems.get(best).who.length >= stems.get(key).who.length ? best : key;
    }, stem(word));
  }
  // Its words, those together that have another name: "gradient checkpointing".
  function terms(query) {
    const list = words(query), keys = list.map(meantKey), kept = new Set(told(list)), found = [];
    for (let at = 0; at < list.length;) {
      let length = 1, others = [];
      same.forEach(function (idea) {
        idea.typed.forEach(function (phrase) {
          const isHere = phrase.every(function (key, step) { return keys[at + step] === key; });
          if (!isHere || phrase.length < length) return;
          if (phrase.length > length) others = [];
          length = phrase.length;
          others.push(...idea.said);
        });
      });
      const together = list.slice(at, at + length), mine = together.filter(function (word) { return kept.has(word); });
      const isLost = length > 1 && new Set(mine).size < 2; // "out of memory" is no memory
      if (isLost && others.length) found.push({ means: [], also: others });
      else for (const word of mine) found.push({ means: meanings(word), also: others });
      at += length;
    }
    apart(found);
    return found;
  }
  // An idea of several words of which each is asked for, somewhere: "slow on one node".
  function apart(found) {
    const keys = found.map(function (term) { return term.means.length ? term.means[0][0][0] : ""; });
    same.forEach(function (idea) {
      const phrase = idea.typed.find(function (each) { return new Set(each).size > 1 && each.every(function (key) { return keys.includes(key); }); });
      if (phrase) found.forEach(function (term, at) { if (phrase.includes(keys[at]) && !term.also.length) term.also = idea.said; });
    });
  }
  function score(term) {
    const best = new Map();
    function count(keys, sure) {
      const lists = keys.map(function (key) { return stems.get(key); });
      if (!lists.every(Boolean)) return;
      const rare = Math.max(...lists.map(function (said) { return Math.log(1 + all / said.who.length); }));
      let found = new Map(lists[0].who.map(function (number, at) { return [number, lists[0].weight[at]]; }));
      for (const said of lists.slice(1)) {
        const both = new Map();
        said.who.forEach(function (number, at) {
          if (found.has(number)) both.set(number, Math.min(found.get(number), said.weight[at]));
        });
        found = both;
      }
      found.forEach(function (weight, number) {
        const value = weight * sure * rare;
        if (!(best.get(number) >= value)) best.set(number, value);
      });
    }
    term.means.forEach(function (each) { count(each[0], each[1]); });
    term.also.forEach(function (phrase) { count(phrase, term.means.length ? SAME : IDEA); });
    return best;
  }

  // --- a file and a line, as a tool, a trace or an address has them ---
  const PLACE = /^(?:(?:file|at|in|en) )?["'`]?((?:[\w.~-]*[\\/])*[\w.-]+\.\w+)["'`]?(?:\.html)?(?:[ ,]+(?:lines?|l[ií]neas?) |:|#L?| L| +(?=\d+(?:-\d+)?$))(\d+)(?:-L?(\d+))?/i;
  const BEFORE_PATH = /^https?:\/\/\S*?\/(?:blob|tree)\/[^/]+\//; // as a forge has it, at whatever commit
  function places(typed) {
    const query = typed.replace(BEFORE_PATH, "");
    const here = /^[:#]L?(\d+)(?:-L?(\d+))?$/i.exec(query);
    const match = PLACE.exec(query);
    const page = document.body.dataset.page;
    if (!here && !match) return [];
    const path = match && match[1].replace(/\\/g, "/").replace(/^(?:\.?\/)+/, "").replace(/\.py\.html$/, ".py");
    const first = Number((here || match)[here ? 1 : 2]), last = Number((here || match)[here ? 2 : 3]) || first;
    const isRange = last > first;
    return files.filter(function (file) {
      if (first > file.lines) return false;
      return here ? file.page === page : ("/" + file.path).endsWith("/" + path) || ("/" + path).endsWith("/" + file.path);
    }).map(function (file) {
      const line = first + (isRange ? "-" + last : "");
      return { kind: "file", name: file.path.split("/").pop() + ":" + line, where: file.path,
        page: file.page + "#L" + first + (isRange ? "-L" + last : "") };
    }).sort(function (one, other) { return annotated(other) - annotated(one) || one.where.length - other.where.length; });
  }
  function annotated(entry) { return Number(noted.has(entry.page.split("#")[0])); }

  // What is found, and whether the names in the files, not here yet, may answer better:
  // it looks like one, or no text says all of it.
  function find(typedQuery) {
    // An option of a command line is the field that it sets.
    // "ZeRO++" is zeropp, as "C++" is cpp to a file.
    const query = typedQuery.replace(/\w{3,}\+\+/, function (name) { return name.slice(0, -2).toLowerCase() + "pp"; }).replace(/^--([a-z]\w*(?:-\w+)*)(?:[= ].*)?$/, function (_, name) { return name.replace(/-/g, "_"); });
    const line = places(query);
    if (line.length) return { results: line.slice(0, LIMIT), wantsNames: false };
    const bare = query.replace(/\(.*$/, "").replace(/:\d*$/, ""); // without what is called with
    const list = terms(bare);
    const touched = new Set(); // the entries that may be found
    function touch(numbers) { numbers.forEach(function (number) { touched.add(number); }); }
    scores.fill(0);
    covered.fill(0);
    let most = 0, isSaid = true;
    list.forEach(function (term) {
      const best = score(term);
      isSaid = isSaid && best.size > 0;
      if (!best.size) return;
      let top = 0;
      best.forEach(function (value) { top = Math.max(top, value); });
      most += top;
      best.forEach(function (value, number) {
        touched.add(number);
        const part = number in share ? share[number] : 1;
        scores[number] += value * part;
        covered[number] += top * part;
      });
    });
    const whole = letters(bare), isTyped = /[_.(A-Z]/.test(query);
    const isIdea = list.some(function (term) { return term.also.length; });
    const isTypedAsCode = /[_.(]|[a-z][A-Z]/.test(query), isCode = isTypedAsCode && !isIdea;
    const aside = list.length > 1 ? 0.55 : 0.25; // what a name counts where prose is asked for
    const said = list.map(function (term) {
      return new Set([...term.means.filter(function (each) { return each[1] >= NEAR; }).flatMap(function (each) { return each[0]; }),
        ...term.also.filter(function (phrase) { return phrase.length === 1; }).flat()]);
    });
    const typed = bare.trim().replace(/^(?:self|cls)\./, ""), tail = typed.slice(typed.lastIndexOf(".") + 1);
    // A name in the midst of words, "what does no_sync do", is in a title or in an address.
    const names = typed.includes(" ") ? (query.match(/\w+_\w+/g) || []).map(letters) : [];
    names.forEach(function (name) { touch(called.having(name)); touch(marks.having(name)); });
    if (whole.length > 2) touch(called.having(whole));
    if (whole.length > 2) for (const id of [whole, "q" + whole]) touch(marks.begun(id));
    if (isTyped) touch(called.having(letters(tail)));
    if (isTyped) files.forEach(function (_, at) { touched.add(firstFile + at); });
    if (isTypedAsCode && whole.length > 4) touch(called.about(whole.length));
    const found = [], some = Uint32Array.from(touched).sort(); // those alike stay in the order of the index
    some.forEach(function (number) {
      const entry = entries[number], isName = IS_NAME[entry.kind];
      let value = most && scores[number] * Math.pow(covered[number] / most, 2) * (!isName || isCode ? 1 : aside);
      if (whole.length > 2) value += likeness(entry, whole) * (!isName || isCode ? 1 : aside);
      // Its id, as a terminal shows it; a question's stands behind a q.
      if (entry.mark && [whole, "q" + whole].includes(entry.mark)) value += 60;
      if (isTyped && isName && entry.kind !== "code") value += named(entry, typed, tail);
      if (isTypedAsCode && isName && whole.length > 4 && entry.letters !== whole && isNear(entry.letters, whole)) value += 40;
      // A word alone may be a name, too; of these the ones that people wrote about come first.
      if (!isTyped && isName && entry.kind !== "code" && isEnd(entry.name, typed, ".")) value += 14 + 6 * annotated(entry);
      names.forEach(function (name) { if (entry.letters.includes(name) || entry.mark.includes(name)) value += isName ? 4 : 12; });
      if (covered[number]) value += titled(entry, said);
      if (value > 0) found.push([value, entry]);
    });
    found.sort(function (one, other) { return other[0] - one[0] || one[1].name.length - other[1].name.length; });
    // Neither people's words nor names fill the list alone.
    const kept = [0, 0];
    const shown = found.filter(function (pair) { return (kept[IS_NAME[pair[1].kind] ? 1 : 0] += 1) <= LIMIT * 0.7; });
    const isAnswered = isSaid && some.some(function (number) { return covered[number] > most * 0.999; });
    const wantsNames = !hasNames && (list.length < 2 || isTypedAsCode || !isAnswered);
    // A name's own line comes first once the names are here: nothing before them is the answer.
    const ready = wantsNames && isTypedAsCode ? [] : shown.slice(0, LIMIT);
    return { results: ready.map(function (pair) { return pair[1]; }), wantsNames: wantsNames };
  }
  // How much of a title is asked for, and how much of what is asked for its title says.
  function titled(entry, said) {
    return Math.max(0, ...entry.titles.map(function (title) {
      const theirs = title.filter(function (key) { return said.some(function (keys) { return keys.has(key); }); }).length;
      const ours = said.filter(function (keys) { return title.some(function (key) { return keys.has(key); }); }).length;
      return 30 * KINDS[entry.kind] * theirs / title.length * Math.pow(ours / said.length, 3);
    }));
  }
  // It has the letters of the query one after the other, however joined.
  function likeness(entry, whole) {
    const at = entry.letters.indexOf(whole);
    if (at < 0) return 0;
    const part = whole.length / entry.letters.length * KINDS[entry.kind];
    if (part >= KINDS[entry.kind]) return 30 * part;
    if (at === 0) return 4 + 16 * part;
    return isStart(entry.name, at) ? 3 + 14 * part : 0;
  }
  // Whether a word begins at a letter of a name.
  const IS_LETTER = /[\p{L}\p{N}]/u;
  function isStart(name, at) {
    let seen = 0, before = "";
    for (const letter of name) {
      if (IS_LETTER.test(letter)) {
        if (seen === at) return !IS_LETTER.test(before) || /[A-Z]/.test(letter);
        seen += 1;
      }
      before = letter;
    }
    return false;
  }
  // It is typed as code: whole, with its owner, or its last part. Nothing is joined: there are thousands.
  function named(entry, typed, tail) {
    const isFile = entry.kind === "file", name = isFile ? entry.where : entry.name;
    const joint = isFile ? "/" : ".";
    if (isEnd(name, typed, joint)) return 60 - entry.name.length / 20;
    if (isEnd(typed, name, joint)) return 50;
    return typed !== tail && !isFile && isEnd(name, tail, joint) ? 20 : 0;
  }
  function isEnd(name, end, joint) {
    return name.endsWith(end) && (name.length === end.length || name[name.length - end.length - 1] === joint);
  }
  Object.assign(window.readerkit, { find: find });
  document.dispatchEvent(new Event("readerkit:index"));
};
