// Marks an answer on the page. What is right, and what is said to each wrong answer,
// stands in the question's own table; here is only how people write things. The rules
// and words of that come from quiz-rules.js, which readerkit/quiz itself fills in.
"use strict";
(function () {
  const rules = window.quizRules;
  const some = {}, whole = {};
  for (const [name, [source, flags]] of Object.entries(rules.patterns)) {
    some[name] = new RegExp(source, flags + "g");
    whole[name] = new RegExp("^(?:" + source + ")$", flags);
  }

  // --- words: a phrase in both languages, its blanks filled in ---

  function tell(phrase, values) {
    return [phrase, rules.phrases[phrase] || phrase].map(function (text, language) {
      return text.replace(/\{(\w+)\}/g, function (blank, name) {
        const value = (values || {})[name];
        return value === undefined ? blank : Array.isArray(value) ? value[language] : String(value);
      });
    });
  }
  function Refusal(told, ofUnit) { this.told = told; this.ofUnit = Boolean(ofUnit); }
  function notRead(answer, expected) {
    return new Refusal(tell("got '{got}', expected {expected}", { got: answer.trim().slice(0, 60), expected: expected }));
  }
  function squeezed(text) { return text.replace(/`/g, "").toLowerCase().replace(some.gaps, ""); }

  // --- numbers ---

  function evaluate(text) {
    const tokens = /\s*(\*\*|\/\/|[-+*/()]|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)/y, found = [];
    text = text.trim().replace(/[×·]/g, "*").replace(/\u2212/g, "-");
    while (tokens.lastIndex < text.length) {
      const match = tokens.exec(text);
      if (!match) return NaN;
      found.push(match[1]);
    }
    let at = 0;
    function sum() {
      let value = product();
      while (found[at] === "+" || found[at] === "-") value = found[at++] === "+" ? value + product() : value - product();
      return value;
    }
    function product() {
      let value = signed();
      while (["*", "/", "//"].includes(found[at])) {
        const sign = found[at++], other = signed();
        value = sign === "*" ? value * other : sign === "/" ? value / other : Math.floor(value / other);
      }
      return value;
    }
    function signed() {
      if (found[at] === "-") { at++; return -signed(); }
      if (found[at] === "+") { at++; return signed(); }
      const base = atom();
      if (found[at] !== "**") return base;
      at++;
      const exponent = signed();
      return Math.abs(exponent) <= 64 ? base ** exponent : NaN;
    }
    function atom() {
      const token = found[at++];
      if (token !== "(") return /^[\d.]/.test(token || "") ? Number(token) : NaN;
      const value = sum();
      return found[at++] === ")" ? value : NaN;
    }
    const value = sum();
    return at === found.length && Math.abs(value) < 1e150 ? value : NaN;
  }
  function computed(text) {
    text = text.replace(some.raised, function (raised) {
      return "**" + Array.from(raised, function (sign) { return rules.raised[sign]; }).join("");
    });
    text = text.replace(/\^/g, "**").replace(/[⋅x]/g, "*");
    text = text.replace(/(?<=\d)([,\u00a0\u2009\u202f](?=\d{3})|_(?=\d))/g, "").replace(/(?<![\d.])0+(?=\d)/g, "");
    if (/[-+]\s*[-+]|(?<![\d.])0+\*\d/.test(text)) return NaN;
    const number = evaluate(text);
    return Math.abs(number) < 1e100 ? number : NaN;
  }
  function smallB(text) {
    const match = whole.small_b.exec(text);
    if (!match || text === text.toUpperCase()) return "";
    let prefix = match.groups.prefix.toLowerCase();
    prefix = prefix === "k" ? prefix : prefix.charAt(0).toUpperCase() + prefix.slice(1);
    const rate = match.groups.rate || "", known = [];
    if (rules.units[prefix + "B" + rate]) known.push(tell("{unit} for bytes", { unit: prefix + "B" + rate }));
    if (rules.units[prefix + "bit" + rate]) known.push(tell("{unit} for bits", { unit: prefix + "bit" + rate }));
    return known.length === 2 ? tell("{one} or {other}", { one: known[0], other: known[1] }) : known[0] || "";
  }
  function own(table, name) { return Object.hasOwn(table, name) ? table[name] : undefined; }
  function findUnit(text) {
    if (text) text = text.replace(some.per_second, "/s");
    if (own(rules.units, text)) return text;
    let known = own(rules.aliases, text);
    const meant = known === undefined && smallB(text);
    if (meant) throw new Refusal(tell("got the unit '{got}', expected {expected}", { got: text, expected: meant }), true);
    if (known === undefined) known = own(rules.aliases, text.toLowerCase());
    if (known === undefined) throw new Refusal(tell("unknown unit '{unit}': expected one such as GB, GiB, MB, ms, s, h, %, $", { unit: text }), true);
    return known;
  }
  function measured(unit) { return rules.units[unit][0]; }
  function convert(number, unit, to) { return number * rules.units[unit][1] / rules.units[to][1]; }
  function readQuantity(text, expected, to) {
    for (const number of text.slice(0, 200).match(some.with_comma) || []) {
      if (!whole.thousands.test(number)) throw new Refusal(tell("got '{got}', expected a decimal point, and commas between thousands only: 138.46 or 1,120", { got: text.slice(0, 60) }));
    }
    const about = text.slice(0, 200).search(some.about) === 0 ? text.match(some.about)[0].length : 0;
    const match = text.length < 200 ? whole.quantity.exec(text.slice(about).replace(/[ .]+$/, "")) : null;
    let number = match ? computed(match.groups.number) : NaN;
    if (Number.isNaN(number)) throw new Refusal(tell("got '{got}', expected {expected}", { got: text.slice(0, 60), expected: expected }));
    let unit = (match.groups.unit || (match.groups.money ? "$" : "")).trim();
    const counted = rules.countable.includes(measured(to)) && whole.counted.exec(unit);
    if (counted) {
      number = Number((number * rules.counts[counted[1]]).toPrecision(12));
      unit = (counted[2] || "").trim();
    }
    unit = findUnit(unit);
    const isRatio = measured(to) === "ratio";
    if (isRatio && ["parameters", "elements"].includes(measured(unit))) unit = "";
    if (counted && isRatio && !unit) unit = "x";
    return { number: number, unit: unit, isComputed: !/^[-+]?[\d.,_]+$/.test(match.groups.number.trim()) || Boolean(counted) };
  }
  function general(number, digits) { // as Python's format with g
    const [mantissa, power] = number.toExponential(digits - 1).split("e");
    if (power < -4 || power >= digits) return String(Number(mantissa)) + "e" + power.replace(/^([-+])(\d)$/, "$10$2");
    return String(Number(number.toFixed(Math.max(0, digits - 1 - power))));
  }
  function toFour(value) { // a tie goes to the even digit, as in Python
    const tie = /^(-?\d\.\d\d[02468])50*(e.*)$/.exec(value.toExponential(60));
    return tie ? Number(tie[1] + tie[2]) : Number(value.toPrecision(4));
  }
  function shownNumber(value) {
    const commas = { maximumFractionDigits: 0 };
    if (Number.isInteger(value) && Math.abs(value) < 1e15) return Math.abs(value) >= 10000 ? value.toLocaleString("en-US", commas) : String(value);
    const rounded = toFour(value);
    if (Math.abs(rounded) >= 10000 && Math.abs(rounded) < 1e15) return rounded.toLocaleString("en-US", commas);
    return general(rounded, 12);
  }
  /** What to ask where the one sign of a number may part what it did not. */
  function twoReadings(answer, value, key) {
    const match = whole.one_sign.exec(answer.slice(0, 200));
    if (!match || value * key <= 0) return "";
    const { head, sign, tail } = match.groups, other = sign === "." ? value * 1000 : value / 1000;
    if (Math.abs(Math.log(other / key)) >= Math.abs(Math.log(value / key))) return "";
    return tell("got '{got}', which is {whole} or {part}: type one of the two",
      { got: answer.slice(0, 60), whole: head + tail, part: head + "." + tail + "0" });
  }
  function markNumber(key, answer) {
    let given;
    try {
      given = readQuantity(answer, key.form, key.unit);
    } catch (refusal) {
      throw refusal.ofUnit && !key.unit ? notRead(answer, key.form) : refusal;
    }
    const [relative, absolute, significant] = key.tolerance;
    const limit = absolute + relative * Math.abs(key.key);
    function accepts(number, wanted) {
      const away = Math.abs(number - wanted);
      if (!significant) return away <= (absolute + relative * Math.abs(wanted)) * (1 + 1e-9) + 1e-12;
      const leading = wanted ? Math.floor(Math.log10(Math.abs(wanted))) : 0;
      return away < 0.51 * 10 ** (leading + 1 - significant);
    }
    if (given.unit && measured(given.unit) !== measured(key.unit)) {
      throw new Refusal(tell(key.unit
        ? "read as {number} {given}, which measures {measured}; expected {asked}, in {unit}"
        : "read as {number} {given}, which measures {measured}; expected a number without a unit",
      { number: shownNumber(given.number), given: given.unit, measured: tell(measured(given.unit)), asked: tell(measured(key.unit)), unit: key.unit }));
    }
    if (given.unit === "B" && measured(key.unit) === "bytes" && rules.units[key.unit][1] >= rules.mega && Math.abs(given.number) < rules.mega) {
      throw new Refusal(tell("read as {number} bytes; a billion is e9: 16 * 7e9 B, or {unit}", { number: shownNumber(given.number), unit: key.unit }));
    }
    let value = given.unit ? convert(given.number, given.unit, key.unit) : given.number;
    const scale = rules.units[key.unit][1], isBare = !given.unit;
    if (isBare && key.unit === "%" && accepts(given.number * 100, key.key)) value = given.number * 100;
    else if (isBare && scale >= rules.mega && key.key > 0 && given.number > key.key * Math.sqrt(scale)) value = given.number / scale;
    if (accepts(value, key.key)) return { credit: 1, remarks: [] };
    if (given.unit && accepts(given.number, key.key)) {
      const values = { given: given.unit, unit: key.unit, worth: shownNumber(convert(1, given.unit, key.unit)) };
      return { credit: 0, remarks: [tell(key.unit
        ? "The number would be right in {unit}, but you wrote {given}: 1 {given} is {worth} {unit}."
        : "The number would be right in no unit, but you wrote {given}: 1 {given} is {worth}.", values)] };
    }
    const ask = twoReadings(answer, value, key.key);
    if (ask) throw new Refusal(ask);
    const remarks = given.isComputed || (isBare && value !== given.number) ? [tell("Read as {value}.", { value: (shownNumber(value) + " " + key.unit).trim() })] : [];
    const away = Math.abs(value - key.key), isOfCounts = !significant && !limit && Number.isInteger(key.key);
    const isNear = isOfCounts ? !Number.isInteger(value) && away < 1 : !significant && away <= 5 * limit;
    const near = isNear ? [[value, key.near]] : [];
    const known = [...key.before, ...near, ...key.after].find(function (each) { return accepts(value, each[0]); });
    const isForeseen = [...key.before, ...key.after].some(function (each) { return accepts(value, each[0]); });
    const ends = isForeseen ? key.ends : [...timesTheAnswer(key, value), ...key.ends];
    return { credit: 0, remarks: known ? [...remarks, known[1]] : remarks, ends: ends };
  }
  function timesTheAnswer(key, value) {
    if (!key.key || !value || value < 0 !== key.key < 0) return [];
    const ratio = value / key.key;
    const ofCounts = key.counts.flatMap(function (n) { return [[n / (n - 1), n + "/" + (n - 1)], [(n - 1) / n, n - 1 + "/" + n]]; });
    const near = [...rules.factors, ...ofCounts].find(function (each) { return Math.abs(ratio / each[0] - 1) <= rules.close; });
    return [tell("Yours is {factor} times the answer.", { factor: near ? near[1] : shownNumber(ratio) })];
  }

  // --- words, lines, orders, pairs ---

  function markGap(key, answer) {
    const bare = answer.trim().replace(/^[`'"]+|[`'"]+$/g, "").replace(/^[.@]+/, "");
    const match = whole.code.exec(bare);
    const given = squeezed(match ? match[1] : bare);
    if (!given) throw new Refusal(tell("got nothing, expected a word"));
    const names = [given, given.slice(given.lastIndexOf(".") + 1)];
    if (names.some(function (name) { return key.accept.includes(name); })) return { credit: 1, remarks: [] };
    const said = names.map(function (name) { return own(key.mistakes, name); });
    return { credit: 0, remarks: said.filter(function (each) { return each !== undefined; }).slice(0, 1) };
  }
  function outcome(found) { return { credit: found[0], remarks: found[1], ends: found[2] }; }
  function markLine(key, answer) {
    const match = answer.length < 300 ? whole.lines.exec(answer) : null;
    if (!match) throw notRead(answer, key.how);
    const kind = key.file.slice(key.file.lastIndexOf(".")), named = answer.match(some.file) || [];
    if (kind !== key.file && named.some(function (each) { return each !== key.file && each.endsWith(kind); })) throw notRead(answer, key.in_file);
    const first = Number(match[1]), last = Number(match[2] || first), runs = key.lines;
    const from = runs[0][0], to = runs[runs.length - 1][1];
    if (!(from <= first && first <= last && last <= to) || (first === from && last === to && runs.length > 1)) throw notRead(answer, key.how);
    const met = runs.filter(function (run) { return run[0] <= last && first <= run[1]; });
    const right = met.filter(function (run) { return run[2] === 1; });
    if (right.length && right.length < met.length) return outcome([0, [key.wide]]);
    // Lines of two remarks, or of none alone: what the first of them does.
    if (met.length > 1) {
      const does = key.own.filter(function (each) { return each[0] <= first; }).slice(-1).map(function (each) { return each[1]; });
      return outcome([0, [...does, first < runs.find(function (run) { return run[2] === 1; })[0] ? key.below : key.above]]);
    }
    return outcome(met[0].slice(2));
  }
  function markOrder(key, answer) {
    const given = answer.split(" "), left = given.slice().sort();
    let rank = 0;
    given.forEach(function (item) {
      let ways = 1;
      for (let n = 2; n < left.length; n++) ways *= n;
      rank += left.indexOf(item) * ways;
      left.splice(left.indexOf(item), 1);
    });
    return outcome(key.outcomes[key.orders[rank]]);
  }
  function markPairs(key, answer) {
    const given = answer.split(/\s+/).filter(Boolean).map(function (pair) { return pair.replace(/^\d+/, ""); });
    if (given.length !== key.parts.length || given.some(function (each) { return !each; })) throw notRead(answer, key.form);
    const wrong = new Map();
    key.parts.forEach(function (part, at) {
      if (Object.keys(part)[0] !== given[at]) wrong.set(given[at], [...(wrong.get(given[at]) || []), ...part[given[at]]]);
    });
    const right = key.parts.filter(function (part, at) { return Object.keys(part)[0] === given[at]; }).length;
    return { credit: key.credit[right], remarks: Array.from(new Set(Array.from(wrong.values()).flat())) };
  }
  function cell(word) { return "-_·".includes(word) || word === "idle" ? "." : squeezed(word); }
  function markWords(key, answer) {
    const given = answer.trim().split(/(?:->|[\s,;|→>[\]'"])+/).filter(Boolean).map(cell);
    if (given.length !== key.cells.length) throw new Refusal(tell(key.cells.length === 1 ? "got {got} words, expected one" : "got {got}, expected {count} words", { got: given.length, count: key.cells.length }));
    const known = key.words.map(squeezed);
    given.forEach(function (word) {
      if (known.length ? !known.includes(word) : !whole.step.test(word)) throw notRead(word, known.length ? key.words.join(", ") : key.how);
    });
    const wrong = given.findIndex(function (word, at) { return word !== cell(key.cells[at]); });
    if (wrong < 0) return { credit: 1, remarks: [] };
    const found = outcome(key.prefixes[wrong]);
    const refuted = key.refuted.find(function (each) {
      const begin = each[0].slice(0, wrong + 1).map(cell);
      return begin.length === wrong + 1 && begin.every(function (word, at) { return word === given[at]; });
    });
    const reason = key.reasons.length ? own(key.reasons[wrong], given[wrong]) : undefined;
    const why = reason === undefined ? key.none : [reason];
    return { credit: found.credit, remarks: [...found.remarks, ...why, ...(refuted ? [refuted[1]] : [])], ends: key.each_end[wrong] };
  }

  // --- grids ---

  function splitRow(line, count) {
    if (count === 1) return [line.trim()];
    line = line.replace(some.manner, "").replace(/(?<=\d)\s*[xX×*]\s*(?=\d)/g, "x").replace(/\s*\|\s*/g, "|");
    line = line.replace(/(?<=\d)\s*,\s*(?=\d)|(?<=[\])}])\s*,\s*(?=[[({])/g, ",");
    const cells = [""];
    let depth = 0;
    for (const sign of line) {
      depth += "[({".includes(sign) - "])}".includes(sign);
      const last = cells[cells.length - 1];
      if (depth <= 0 && (/\s/.test(sign) || (sign === "," && !/\d$/.test(last)))) cells.push("");
      else cells[cells.length - 1] = last + sign;
    }
    return cells.filter(Boolean);
  }
  function cellNotRead(text, expected) { return new Refusal(tell("got '{got}', expected {expected}", { got: text.slice(0, 60), expected: expected })); }
  const readers = {
    groups: function (text) {
      const lists = Array.from(text.matchAll(some.list), function (match) { return match[1]; });
      const inner = lists.filter(function (each) { return each.trim(); });
      const rest = inner.length ? text.replace(some.list, "") : "";
      const groups = inner.length ? inner : text.split(/[|/]/);
      function count(signs) { return Array.from(text).filter(function (sign) { return signs.includes(sign); }).length; }
      const strange = count("[({") !== count("])}") || /[^\s,|/[\](){}]/.test(rest) ||
        groups.some(function (group) { return /[^\d\s,]/.test(group) || !group.replace(/[ ,]/g, "") || (group.includes(",") && /\d\s+\d/.test(group)); });
      if (strange) throw cellNotRead(text, tell("ranks, with a bar between groups, or a list of lists"));
      return groups.map(function (group) { return group.match(/\d+/g).map(Number).sort(function (a, b) { return a - b; }); })
        .sort(function (a, b) { const at = a.findIndex(function (n, i) { return n !== b[i]; }); return at < 0 ? a.length - b.length : b[at] === undefined ? 1 : a[at] - b[at]; });
    },
    shape: function (text) {
      const bare = text.trim().replace(/^[[\](){}]+|[[\](){}]+$/g, "");
      const bySign = bare.split(/\s*[x×*]\s*/);
      const parts = bySign.length > 1 ? bySign.map(function (part) { return part.replace(/,/g, ""); }) : bare.split(/[,\s]+/);
      const sizes = parts.map(evaluate);
      if (sizes.some(Number.isNaN)) throw cellNotRead(text, tell("sizes such as 1024x4096"));
      return sizes;
    },
    number: function (text) { return readQuantity(text, tell("a number without a unit: 41.7 or 3/16"), "").number; },
    word: function (text, words) {
      const given = squeezed(text.replace(some.manner, "")), known = words.map(squeezed);
      if (known.includes(given)) return given;
      const found = known.filter(function (word) { return given.length > 1 && (word.startsWith(given) || given === word + "s"); });
      if (found.length !== 1) throw cellNotRead(text, tell("one of {words}", { words: words.join(", ") }));
      return found[0];
    },
  };
  /** What is wrong with groups along an axis, told from the ranks in them. */
  function wrongGroups(groups, layout, axis) {
    const every = groups.flat(), count = layout.reduce(function (all, each) { return all * each[1]; }, 1);
    const beyond = every.find(function (rank) { return rank >= count; });
    if (beyond !== undefined) return tell("there is no rank {rank}: the last is {last}", { rank: beyond, last: count - 1 });
    for (let rank = 0; rank < count; rank++) {
      const times = every.filter(function (each) { return each === rank; }).length;
      if (times !== 1) return tell("rank {rank} stands in {count} of these groups, and belongs to one", { rank: rank, count: times });
    }
    function place(rank) {
      return layout.map(function (each) { const at = rank % each[1]; rank = Math.floor(rank / each[1]); return at; });
    }
    for (const group of groups) {
      const first = place(group[0]);
      for (const other of group.slice(1)) {
        const there = place(other);
        const at = layout.findIndex(function (each, n) { return each[0] !== axis && first[n] !== there[n]; });
        if (at >= 0) {
          return tell("ranks {one} and {other} differ in {name}, {here} and {there}; ranks of a {axis} group differ in {axis} alone",
            { one: group[0], other: other, name: layout[at][0], here: first[at], there: there[at], axis: axis });
        }
      }
    }
    const wanted = layout.find(function (each) { return each[0] === axis; })[1];
    const size = Math.min(...groups.map(function (group) { return group.length; }));
    return tell("a group of {size} ranks is too small: {axis} is {wanted}, so that many ranks differ in {axis} alone", { size: size, axis: axis, wanted: wanted });
  }
  function markGrid(key, answer) {
    const lines = answer.split(/[\n;]/).map(function (line) { return line.trim(); }).filter(Boolean);
    if (lines.length !== key.rows.length) throw new Refusal(tell("got {got}, expected {count} rows: {form}", { got: lines.length, count: key.rows.length, form: key.how }));
    const remarks = [], how = [], whys = [];
    key.rows.forEach(function (row, at) {
      const cells = splitRow(lines[at], key.columns.length);
      if (cells.length !== key.columns.length) throw new Refusal(tell("row '{row}': got {got}, expected {count} cells with a blank between them: {form}", { row: key.labels[at], got: cells.length, count: key.columns.length, form: key.how }));
      cells.forEach(function (text, column) {
        const read = readers[key.columns[column]];
        let given;
        try {
          given = read(text, key.words);
        } catch (refusal) {
          throw new Refusal(tell("{row}, {column}: {what}", { row: key.labels[at], column: key.titles[column], what: refusal.told }));
        }
        if (JSON.stringify(given) === JSON.stringify(read(row[column], key.words))) return;
        const told = key.said[at * key.columns.length + column];
        const why = key.columns[column] === "groups" ? wrongGroups(given, key.layout, key.axes[at][column]) : ["", ""];
        remarks.push(told.map(function (phrase, language) { return phrase.replace("{cell}", text).replace("{why}", why[language]); }));
        how.push(...key.reckoned[at][column]);
        if (!whys.includes(at)) whys.push(at);
      });
    });
    const rows = whys.flatMap(function (at) { return key.whys[at]; });
    return { credit: key.credit[key.credit.length - 1 - remarks.length], remarks: remarks, ends: [...how, ...rows] };
  }

  // --- texts of one's own ---

  function plainWords(text) {
    return (text.toLowerCase().replace(/n['’]t\b/g, " not").normalize("NFKD").replace(/\p{M}/gu, "").match(/[0-9a-z]+/g) || []).join(" ");
  }
  function find(patterns, text) {
    const sentences = text.split(some.sentence_end).map(function (part) { return part.trim().split(/\s+/).join(" "); });
    const found = sentences.filter(Boolean).find(function (sentence) {
      const words = plainWords(sentence);
      return patterns.some(function (terms) {
        return terms.every(function (term) { return new RegExp(term[0]).test(words) !== term[1]; });
      });
    }) || "";
    return found.length <= rules.most_quoted ? found : found.slice(0, rules.most_quoted).replace(/ [^ ]*$/, "") + " …";
  }
  function readText(key, answer) {
    const head = new RegExp("^(?:" + rules.patterns.head[0] + ")").exec(answer);
    const text = (head ? answer.slice(head[0].length) : answer).trim();
    const count = plainWords(text).split(" ").filter(Boolean).length;
    if (!count || count > rules.most_words) throw new Refusal(tell("got {count} words, expected {most}", { count: count, most: tell("1 to {most} words", { most: rules.most_words }) }));
    const found = head && head[1].match(/\d{1,9}/g), numbers = found && Array.from(new Set(found.map(Number))).sort(function (a, b) { return a - b; });
    const strange = numbers && (numbers.some(function (number) { return number > key.points.length; }) || (numbers[0] === 0 && numbers.length > 1));
    if (strange) throw new Refusal(tell("got points {got}, expected some of 1 to {count}, or 0 for none", { got: numbers.join(" "), count: key.points.length }));
    return { text: text, marks: numbers && numbers.filter(Boolean) };
  }
  /** Which points the words of a text make, before its reader corrects that. */
  function look(key, answer) {
    const text = readText(key, answer).text;
    return key.points.map(function (point, at) {
      const denied = find(point.denied, text), found = denied ? "" : find(point.found, text);
      return { number: at + 1, says: point.says, found: Boolean(found), words: found || denied };
    });
  }
  function markText(key, answer) {
    const given = readText(key, answer), points = look(key, answer);
    const found = points.filter(function (point) { return point.found; }).map(function (point) { return point.number; });
    const made = given.marks || found;
    const remarks = points.map(function (point) {
      const isMade = made.includes(point.number), values = { number: point.number, words: point.words, point: point.says };
      if (point.found && isMade) return tell("{number} found: “{words}”. {point}", values);
      if (isMade) return tell("{number} marked by you as made: {point}", values);
      if (point.found) return tell("{number} marked by you as not made: {point}", values);
      return tell(point.words ? "{number} contradicted: “{words}”. {point}" : "{number} not found: {point}", values);
    });
    const marks = given.marks ? (given.marks.join(" ") || "0") + " " : "";
    return { credit: made.length / points.length, remarks: remarks, kept: marks + "(found " + found.join(" ") + ") " + rules.marks + " " + given.text };
  }

  /** What an answer earns: its credit, and remarks by number or as words. */
  function mark(key, answer) {
    if (key.answers) {
      const found = own(key.answers, answer);
      if (!found) throw notRead(answer, key.how);
      return outcome(found);
    }
    const by = [["orders", markOrder], ["lines", markLine], ["parts", markPairs], ["cells", markWords],
      ["tolerance", markNumber], ["accept", markGap], ["points", markText], ["rows", markGrid]];
    const found = by.find(function (each) { return key[each[0]]; })[1](key, answer);
    // What shows the key is said once no other try is left.
    return { ...found, ends: found.credit < 1 ? found.ends || key.ends || [] : [] };
  }
  window.readerkit.quiz = { mark: mark, look: look, Refusal: Refusal, groups: readers.groups, tell: tell };
})();
