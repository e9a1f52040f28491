package main

import "strings"

// The story: the facts, and the characters that know them. None of it is left to a model.

const scene = `Harrow Quay, the morning after the regatta. The harbour clock has stopped at eleven minutes
past nine: its brass pendulum is gone. Three people had a key to the tower, and all three are still on
the quay: ODILE, who winds the clock; TEAGUE, captain of the night ferry; INES, the baker at the foot of
the tower. Talk to them, gather clues, and accuse one of them with the clue that proves it.`

const solved = `Teague puts the sack on the table, and the pendulum rings inside it. "The ferry sails by that clock,"
he says. "With it stopped there was no proof how late I was, the night I left Bram's boy standing on the quay."
At noon the clock of Harrow Quay strikes again. You have solved it.`

// character is a person to talk to.
type character struct {
	id, name, manner string
	clues            []clue
}

// clue is a fact that a character tells a player who asks about the right thing and has the
// clue before it.
type clue struct {
	id    string
	about []string // any of these words triggers it
	needs string   // the clue that the player must have before; empty: none
	fact  string   // in the character's words, in the first person
	note  string   // for the notebook
}

const culprit, proof = "teague", "sack"

var cast = []character{
	{"odile", "Odile Marsh", "seventy, dry and exact; she speaks of time as of an unreliable relative", []clue{
		{"hour", []string{"clock", "time", "when", "stop", "pendulum"}, "", "I heard it stop while I was closing my shutters, at nine eleven, and nobody came down the tower stairs past my door. So whoever did it left by the bakery side.", "The thief left the tower by the bakery side, at 9:11."},
		{"key", []string{"key", "lock", "door", "ferry", "teague", "captain"}, "flour", "Since you know of the flour: Teague borrowed my key at eight, to set his watch by the works, he said. It came back white to the bow.", "Teague had Odile's key that night; it came back white with flour."},
	}},
	{"ines", "Ines Corvo", "thirty, quick and warm; she never stops kneading while she talks", []clue{
		{"flour", []string{"night", "flour", "bakery", "stairs", "footprint", "saw", "see", "hear", "noise", "anyone", "side"}, "hour", "Then it was that door I heard. Somebody knocked over my flour bin in the dark, and the footprints went to the ferry steps. I took them for the cat, if cats wear boots.", "Boot prints in flour lead from the bakery to the ferry steps."},
		{"quarrel", []string{"teague", "captain", "ferry", "late", "bram"}, "", "Teague? He was shouting at the harbour master all week. They say that he sails late, and he says that the clock lies.", "Teague was accused of sailing late, and blamed the clock."},
	}},
	{"teague", "Captain Teague", "fifty, hearty and loud; he changes the subject to the weather", []clue{
		{"alibi", []string{"where", "night", "nine", "ferry", "last", "alibi", "clock"}, "", "At nine? Casting off, on the stroke, as ever. Ask anyone who was not aboard.", "Teague says that he cast off at nine sharp."},
		{"sack", []string{"key", "flour", "sack", "boots", "white", "hold"}, "key", "That sack in the hold? Ballast. Heavy, aye, and it rings a bit when she rolls. White? That is ... salt.", "In the ferry's hold lies a heavy sack that rings, and is white with flour."},
	}},
}

func find(id string) *character {
	for i := range cast {
		if strings.EqualFold(cast[i].id, id) {
			return &cast[i]
		}
	}
	return nil
}

// tells returns the clues that a character tells a player with these clues who says a text.
func (c *character) tells(said string, has map[string]bool) []clue {
	said = strings.ToLower(said)
	var told []clue
	for _, k := range c.clues {
		if has[k.id] || k.needs != "" && !has[k.needs] {
			continue
		}
		for _, word := range k.about {
			if strings.Contains(said, word) {
				told = append(told, k)
				break
			}
		}
	}
	return told
}
