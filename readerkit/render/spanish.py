"""The words of site and terminal in Spanish, by the English ones."""

SPANISH = {
    "Skip to the content": "Ir al contenido",
    "Start": "Inicio",
    "Read the code that trains large models": (
        "Lea el código que entrena modelos grandes"
    ),
    "Read": "Leer",
    "Side by side": "Lado a lado",
    "Minis": "Minis",
    "Paths": "Rutas",
    "Reading paths": "Rutas de lectura",
    "Chapters": "Capítulos",
    "Concepts": "Conceptos",
    "Quiz": "Quiz",
    "Each row": "Cada fila",
    "Solution": "Solución",
    "Begin": "Empezar",
    "Minutes": "Minutos",
    "Only what is due again": "Solo lo que toca repasar",
    "Topic": "Tema",
    "Answer": "Respuesta",
    "Your answer": "Su respuesta",
    "Skip": "Saltar",
    "Stop here": "Parar aquí",
    "Another quiz": "Otro quiz",
    "Go on": "Seguir",
    "answered": "respondidas",
    "Exam: nothing is said until the end": "Examen: nada se dice hasta el final",
    "So far": "Hasta ahora",
    "Right.": "Correcto.",
    "Not yet.": "Todavía no.",
    "Wrong.": "Incorrecto.",
    "Skipped.": "Saltada.",
    "of it is right": "es correcto",
    "points": "puntos",
    "Points": "Puntos",
    "minutes left": "minutos restantes",
    "passed": "aprobado",
    "passes": "para aprobar",
    "not passed": "no aprobado",
    "95% interval": "intervalo del 95 %",
    "Choice questions without luck": "Preguntas de elección sin la suerte",
    "Read next": "Leer después",
    "Try again, for fewer points.": "Otra vez, por menos puntos.",
    "Which of these points did you make?": "¿Cuáles de estos puntos ha dado?",
    "Click the line, or type its number.": "Haga clic en la línea o escriba su número.",
    "Every answer is kept on this machine at once.": (
        "Cada respuesta se guarda al momento en esta máquina."
    ),
    (
        "Answer for yourself, then open the solution. Marks and other numbers: in the "
        "terminal, or on the served site."
    ): (
        "Responda por su cuenta y abra después la solución. Con puntos y otros "
        "números: en la terminal, o en el sitio servido."
    ),
    "Questions": "Preguntas",
    "References": "Referencias",
    "Search": "Buscar",
    "Search names, files, notes": "Buscar nombres, archivos, notas",
    "Theme": "Tema",
    "citation": "decisión",
    "note": "nota",
    "pitfall": "trampa",
    "Decided": "Decisión",
    "Instead of": "En lugar de",
    "Why": "Por qué",
    "Cost": "Costo",
    "Note": "Nota",
    "Source": "Fuente",
    "The mini": "La versión mínima",
    "Proof": "Prueba",
    "Evidence": "Evidencia",
    "ran here": "se ejecutó aquí",
    "ran here and sent nothing": "se ejecutó aquí y no envió nada",
    "no record covers these lines": "ningún registro cubre estas líneas",
    "lines": "líneas",
    "commit": "commit",
    "blob": "blob",
    "reviewed against exactly these lines": "revisada con exactamente estas líneas",
    "not reviewed yet": "aún sin revisar",
    "these lines changed since the review": "estas líneas cambiaron tras la revisión",
    "these lines are not in the lock": "estas líneas no están en el lock",
    "in a folder, read where it stands": "en una carpeta, leída donde está",
    "the same lines on the upstream host": "las mismas líneas en el sitio original",
    "Notes in this file": "Notas de este archivo",
    "file": "archivo",
    "question": "pregunta",
    "more line": "línea más",
    "difficulty": "dificultad",
    "notes read": "notas leídas",
    "Skip to the first note": "Ir a la primera nota",
    "Previous note": "Nota anterior",
    "Next note": "Nota siguiente",
    "Why, sources, evidence": "Por qué, fuentes, evidencia",
    (
        "A bracket beside the numbers shows the lines of a note. Keys: the second Tab "
        "on this page offers the first note; ↑ and ↓ in each note lead to the one "
        "before and after."
    ): (
        "Un corchete junto a los números señala las líneas de una nota. Teclado: el "
        "segundo Tab de esta página ofrece la primera nota; ↑ y ↓ en cada nota llevan "
        "a la anterior y a la siguiente."
    ),
    "Uses of what this file defines": "Usos de lo que define este archivo",
    "Not translated yet: the English text.": "Aún sin traducir: texto en inglés.",
    "The English text changed after this one.": (
        "El texto en inglés cambió después de esta traducción."
    ),
    "Print, quote, link: every line has an address.": (
        "Imprima, cite, enlace: cada línea tiene su dirección."
    ),
    "What the mini leaves out": "Lo que la versión mínima omite",
    "same": "igual",
    "simplified": "simplificado",
    "differs": "distinto",
    "upstream-only": "solo en el original",
    "One step, event by event": "Un paso, evento a evento",
    "edge": "borde",
    "both sides alike": "ambos lados iguales",
    "they differ for a named reason": "difieren por una razón dada",
    "they differ without one": "difieren sin razón conocida",
    "nothing on this side": "nada en este lado",
    "What does rank 0 issue next?": "¿Qué emite ahora el rank 0?",
    "Just show me": "Mostrar todo",
    "Yes:": "Sí:",
    "No:": "No:",
    "issued in C++: no line of Python to show": (
        "emitido en C++: no hay línea de Python que mostrar"
    ),
    "issued by the comparison itself: no line of either side to show": (
        "emitido por la propia comparación: no hay línea de ningún lado que mostrar"
    ),
    "the lines have changed since: none to show": (
        "las líneas han cambiado desde entonces: ninguna que mostrar"
    ),
    "The schedules, drawn": "Los schedules, dibujados",
    "Records of other pages": "Registros de otras páginas",
    "Ran in its step:": "Ejecutado en su paso:",
    "Ran in set-up or another step:": "Ejecutado al prepararlo o en otro paso:",
    "section": "sección",
    "no record runs this code": "ningún registro ejecuta este código",
    "All files": "Todos los archivos",
    "Needs first": "Requiere antes",
    "Returns in": "Reaparece en",
    "Notes": "Notas",
    "Beside the mini, with the evidence": "Junto a la versión mínima, con la evidencia",
    "By topic": "Por tema",
    "Cited by": "Citado por",
    "Defined at line": "Definido en la línea",
    "Not seen": "No observado",
    "Not in this work": "No está en este trabajo",
    "Counted, not derived": "Contado, no deducido",
    "Every line of the verdict": "Todas las líneas del veredicto",
    "Failure path": "Ruta de fallos",
    "In its file": "En su archivo",
    "Line by line": "Línea a línea",
    "Losses of both sides, step by step.": "Pérdidas de ambos lados, paso a paso.",
    "Make it again:": "Para repetirlo:",
    "make it again:": "para repetirlo:",
    "Next": "Siguiente",
    "Previous": "Anterior",
    "One stop, now": "Una parada, ya",
    "Parameters": "Parámetros",
    "Prerequisite path": "Ruta de requisitos",
    "Synthesis path": "Ruta de síntesis",
    "Read the note": "Leer la nota",
    "Shims": "Adaptaciones",
    "Something differs without a reason.": "Algo difiere sin razón conocida.",
    "The other ranks": "Los demás ranks",
    "The raw record": "El registro completo",
    "The same on the upstream host": "Lo mismo en el sitio original",
    "What one can do at the end": "Lo que se sabe hacer al final",
    "What rank 0 keeps between steps.": "Lo que el rank 0 conserva entre pasos.",
    "What to read": "Qué leer",
    "With notes": "Con notas",
    "files": "archivos",
    "from": "de",
    "lower lane": "carril inferior",
    "upper lane": "carril superior",
    "more lines": "líneas más",
    "notes": "notas",
    "on this machine": "en esta máquina",
    "passed at": "se aprueba con",
    "questions": "preguntas",
    "rank": "rank",
    "ranks on": "ranks con",
    "recorded": "registrado",
    "records": "registros",
    "sections": "secciones",
    "state": "estado",
    "the mini": "la versión mínima",
    "upstream": "original",
    "yours": "suya",
    "memory": "memoria",
    "time": "tiempo",
    "coordination": "coordinación",
    "reliability": "fiabilidad",
    "hardware": "hardware",
    "wire": "cable",
    "collective": "colectivo",
    "parameters": "parámetros",
    "gradients": "gradientes",
    "optimizer": "optimizador",
    "activations": "activaciones",
    "schedule": "schedule",
    "model": "modelo",
    "job": "trabajo",
    "operation": "operación",
    "side": "lado",
    "calls": "llamadas",
    "payload bytes": "bytes de carga",
    "by formula": "según la fórmula",
    "formula": "fórmula",
    "what": "qué",
    "mini": "mínima",
    "difference": "diferencia",
    "tolerance": "tolerancia",
    "reason": "razón",
    "shim": "adaptación",
    (
        "A mechanism that saves memory against the one that talks, and the wire "
        "they share."
    ): (
        "Un mecanismo que ahorra memoria frente al que comunica, y el cable que "
        "comparten."
    ),
    ("A symptom, what is behind it, and the lines to look at."): (
        "Un síntoma, lo que hay detrás y las líneas que conviene mirar."
    ),
    ("Collectives of one step, against the formula"): (
        "Colectivos de un paso, frente a la fórmula"
    ),
    (
        "Each rank holds a slice of the weight's input dimension, so each rank's "
        "product is only a part of the sum. Which collective closes the layer? "
        "Decide, then read."
    ): (
        "Cada rank tiene una parte de la dimensión de entrada del peso, así que "
        "su producto es solo un sumando. ¿Qué colectivo cierra la capa? Decida y "
        "luego lea."
    ),
    ("Every idea after those it needs, with the notes that show it first."): (
        "Cada idea después de las que necesita, con las notas que la muestran por "
        "primera vez."
    ),
    (
        "Every key is computed from a formula, an anchor or a record; a wrong "
        "answer leads to the line that refutes it."
    ): (
        "Cada respuesta correcta sale de una fórmula, un ancla o un registro; una "
        "respuesta errónea lleva a la línea que la refuta."
    ),
    (
        "Every line shown here is held against a committed lock; every number "
        "against a record or a formula."
    ): (
        "Cada línea mostrada se coteja con un lock; cada número, con un registro o "
        "una fórmula."
    ),
    ("Everything agrees, or differs for a named reason."): (
        "Todo coincide, o difiere por una razón dada."
    ),
    ("Lines with a bar in the margin ran in a recorded step:"): (
        "Las líneas con barra al margen se ejecutaron en un paso registrado:"
    ),
    (
        "One step of a pipeline, as it ran: more ranks than cores show the order, "
        "not the time."
    ): (
        "Un paso de un pipeline, tal como corrió: con más ranks que núcleos "
        "muestra el orden, no el tiempo."
    ),
    "Several definitions; syntax alone cannot tell which is meant; lines": (
        "Varias definiciones; la sintaxis sola no dice cuál es; líneas"
    ),
    "Some of these uses may mean another definition; syntax alone cannot tell:": (
        "Algunos de estos usos pueden referirse a otra definición; "
        "la sintaxis sola no lo dice:"
    ),
    "imported, and not defined here": "importado, y no definido aquí",
    "line": "línea",
    "Lines that use it:": "Líneas que lo usan:",
    (
        "Counted are names in code that syntax can place: by imports, scopes, self "
        "and base classes. What hangs on a value (a method of an instance) or is only "
        "text in a string is not counted."
    ): (
        "Se cuentan los nombres en código que la sintaxis puede situar: por "
        "importaciones, ámbitos, self y clases base. No se cuenta lo que cuelga de un "
        "valor (un método de una instancia) ni lo que es solo texto en una cadena."
    ),
    (
        "The lines of the real system on the left, the small one that does the "
        "same on the right, and what was seen when both ran."
    ): (
        "A la izquierda las líneas del sistema real, a la derecha la versión "
        "mínima, y lo que se vio al ejecutar ambas."
    ),
    ("The mini has nothing in its place."): (
        "La versión mínima no tiene nada en su lugar."
    ),
    (
        "The real lines at a pinned commit, the decision they hold, the small "
        "implementation of the same idea, and the evidence that both behave alike."
    ): (
        "Las líneas reales en un commit fijado, la decisión que contienen, la "
        "implementación mínima de la misma idea y la evidencia de que ambas se "
        "comportan igual."
    ),
    ("This record is stale: the code has changed since."): (
        "Este registro está caducado: el código ha cambiado."
    ),
    (
        "Three ways through the same notes: in the order they build on each other, "
        "from what went wrong, and by what they trade."
    ): (
        "Tres caminos por las mismas notas: en el orden en que se apoyan, desde lo "
        "que falló y por lo que intercambian."
    ),
    (
        "What each idea answers, what it needs first, where it returns, and the "
        "lines that hold it."
    ): (
        "Qué responde cada idea, qué requiere antes, dónde reaparece y las líneas "
        "que la contienen."
    ),
    "Labs": "Labs",
    "Estimates": "Cálculos",
    "number": "número",
    "What fits": "Lo que cabe",
    "The crossing": "El cruce",
    "Why distribute": "Por qué distribuir",
    "Why these": "Por qué estas",
    "The others": "Las demás",
    "Assumed": "Supuestos",
    "convention": "convención",
    "source": "fuente",
    "What one GPU holds": "Lo que guarda una GPU",
    "What a step sends": "Lo que envía un paso",
    "The bubble of a pipeline": "La burbuja de un pipeline",
    "Where ring and tree cross": "Dónde se cruzan anillo y árbol",
    "A layout for 70 billion parameters on 64 GPUs": (
        "Una disposición para 70 mil millones de parámetros en 64 GPU"
    ),
    (
        "Weights, gradients, optimizer and activations, and what each stage of "
        "ZeRO shards of them."
    ): (
        "Pesos, gradientes, optimizador y activaciones, y lo que fragmenta de "
        "ellos cada stage de ZeRO."
    ),
    "Bytes that one rank sends in one step, by the axis that sends them.": (
        "Bytes que envía un rank en un paso, según el eje que los envía."
    ),
    ("The time that ranks wait, and the activations that they hold meanwhile."): (
        "El tiempo que esperan los ranks, y las activaciones que guardan entretanto."
    ),
    (
        "A tree starts less often, a ring sends less: which is faster depends "
        "on the size."
    ): (
        "Un árbol arranca menos veces, un anillo envía menos: cuál es más "
        "rápido depende del tamaño."
    ),
    ("Every way to cut the model over the cluster, weighed; the fastest that fit."): (
        "Todas las formas de repartir el modelo en el clúster, pesadas; las más "
        "rápidas que caben."
    ),
    (
        "Each number with its formula, its convention and its source; the "
        "command computes it for a model or a cluster of yours."
    ): (
        "Cada número con su fórmula, su convención y su fuente; el comando lo "
        "calcula para un modelo o un clúster suyo."
    ),
    "The cloud task": "La tarea en la nube",
    "The same file:": "El mismo archivo:",
    "The solution, after an attempt of your own": (
        "La solución, después de un intento propio"
    ),
    (
        "A question to answer by measuring, on the processors of this machine; "
        "the solution waits until you have tried."
    ): (
        "Una pregunta que se responde midiendo, en los procesadores de esta "
        "máquina; la solución espera a que lo haya intentado."
    ),
}
